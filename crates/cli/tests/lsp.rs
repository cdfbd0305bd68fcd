//! Tests `braid lsp` with a client that speaks the protocol with the process.

mod common;

use common::{Folder, command};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};

/// A client of one server.
struct Client {
    child: Child,
    output: BufReader<ChildStdout>,
    next: u64,
    /// The version of the last text that was sent.
    version: u64,
    folder: Folder,
}

impl Client {
    fn start(folder: Folder) -> Self {
        let mut lsp = command();
        lsp.arg("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = lsp.spawn().expect("the server starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, output, next: 0, version: 0, folder }
    }

    /// A server that is initialized, for a folder.
    fn ready(folder: Folder) -> Self {
        let mut client = Self::start(folder);
        let root = client.uri("");
        let found = client.ask("initialize", json!({ "rootUri": root, "capabilities": {} }));
        assert_eq!(found["result"]["capabilities"]["renameProvider"], true);
        client.tell("initialized", json!({}));
        client
    }

    fn uri(&self, name: &str) -> String {
        let path = self.folder.path(name);
        format!("file://{}", path.to_str().expect("a path").trim_end_matches('/'))
    }

    fn write(&mut self, bytes: &[u8]) {
        let input = self.child.stdin.as_mut().expect("piped");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the server reads");
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.write(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn receive(&mut self) -> Value {
        let mut len = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("a header") > 0, "the server ended");
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", text)) => len = text.parse().expect("a length"),
                _ => break,
            }
        }
        let mut body = vec![0; len];
        self.output.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    /// Asks, and returns the answer. Notifications before it are left out.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.receive();
            if message.get("id") == Some(&json!(id)) {
                return message;
            }
        }
    }

    /// Opens a document with this text.
    fn open(&mut self, name: &str, text: &str) {
        self.version += 1;
        let document = json!({
            "uri": self.uri(name), "languageId": "braid", "version": self.version, "text": text,
        });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn change(&mut self, name: &str, text: &str) {
        self.version += 1;
        let params = json!({
            "textDocument": { "uri": self.uri(name), "version": self.version },
            "contentChanges": [{ "text": text }],
        });
        self.tell("textDocument/didChange", params);
    }

    /// The diagnostics of the document that was opened or changed last.
    fn diagnostics(&mut self, name: &str) -> Vec<Value> {
        let uri = self.uri(name);
        loop {
            let message = self.receive();
            let params = &message["params"];
            if message["method"] == "textDocument/publishDiagnostics"
                && (&params["uri"], &params["version"]) == (&json!(uri), &json!(self.version))
            {
                return message["params"]["diagnostics"].as_array().expect("a list").clone();
            }
        }
    }

    /// Asks about the place of a text in a document: at the `offset`th letter of its first
    /// occurrence.
    fn at(&mut self, method: &str, name: &str, text: &str, what: &str, offset: usize) -> Value {
        let params = self.place(name, text, what, offset);
        self.ask(method, params)["result"].clone()
    }

    fn place(&self, name: &str, text: &str, what: &str, offset: usize) -> Value {
        let byte = text.find(what).unwrap_or_else(|| panic!("no {what}")) + offset;
        let line = text[..byte].matches('\n').count();
        let column = byte - text[..byte].rfind('\n').map_or(0, |end| end + 1);
        json!({
            "textDocument": { "uri": self.uri(name) },
            "position": { "line": line, "character": column },
        })
    }

    /// Ends the server in order.
    fn end(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null)["result"], Value::Null);
        let refused = self.ask("textDocument/hover", json!({}));
        assert_eq!(refused["error"]["code"], -32600);
        self.tell("exit", Value::Null);
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0));
    }
}

const MODEL: &str = "\
// Lets few packets of a source pass.
nf few(most: u32 = 9) {
  state seen: u32 per ip.src = 0, idle 60 s;
  match {
    forward and has ip => {
      let next = seen + 1;
      seen = next;
      if next > most { drop \"too many\"; }
      output;
    }
    else => output;
  }
}
";

const CHAIN: &str = "\
use \"model.braid\";

chain c {
  interface lan { behind 10.0.0.0/8 }
  interface wan;
  limit = few(most: 3);
  path lan <-> limit <-> monitor() <-> wan;
}
";

/// A folder with both files, and a client that has opened them.
fn both() -> Client {
    let folder = Folder::new();
    folder.write("model.braid", MODEL).write("chain.braid", CHAIN);
    let mut client = Client::ready(folder);
    client.open("chain.braid", CHAIN);
    client.open("model.braid", MODEL);
    client
}

#[test]
fn errors_are_published_and_go_away() {
    let mut client = both();
    assert_eq!(client.diagnostics("model.braid").iter().filter(|d| d["severity"] == 1).count(), 0);
    client.change("model.braid", &MODEL.replace("ip.src", "ip.sorce"));
    let found = client.diagnostics("model.braid");
    let error = found.iter().find(|found| found["code"] == "E0202").expect("the error");
    assert_eq!(error["severity"], 1);
    assert_eq!(error["range"]["start"], json!({ "line": 2, "character": 22 }));
    assert!(error["message"].as_str().expect("a text").contains("did you mean `ip.src`"));
    client.change("chain.braid", CHAIN);
    let found = client.diagnostics("chain.braid");
    let text = found[0]["message"].as_str().expect("a text");
    assert!(text.contains("model.braid:3:23: there is no field"), "{text}");
    client.change("model.braid", MODEL);
    assert!(client.diagnostics("model.braid").is_empty());
    let rules = "policy { Position(limit, first); } a = monitor(); b = few();";
    client
        .change("chain.braid", &CHAIN.replace("path lan <-> limit <-> monitor() <-> wan;", rules));
    assert_eq!(client.diagnostics("chain.braid")[0]["code"], "E0815");
    client.change("chain.braid", CHAIN);
    assert!(client.diagnostics("chain.braid").is_empty());
    client.end();
}

#[test]
fn hover_shows_types_documentation_and_what_a_function_does() {
    let mut client = both();
    let mut hover = |name: &str, text: &str, what: &str, offset: usize| {
        let found = client.at("textDocument/hover", name, text, what, offset);
        found["contents"]["value"].as_str().unwrap_or_default().to_owned()
    };
    let field = hover("model.braid", MODEL, "ip.src", 4);
    assert!(field.contains("ip.src: ip4") && field.contains("32 bits"), "{field}");
    let local = hover("model.braid", MODEL, "next > most", 1);
    assert!(local.contains("next: u32") && local.contains("local name"), "{local}");
    let state = hover("model.braid", MODEL, "seen + 1", 0);
    assert!(state.contains("state seen: u32 per ip.src"), "{state}");
    let nf = hover("chain.braid", CHAIN, "few(", 1);
    assert!(nf.contains("nf few(most: u32 = 9"), "{nf}");
    assert!(nf.contains("Lets few packets of a source pass."), "{nf}");
    assert!(nf.contains("```text\nfew"), "no action profile: {nf}");
    let library = hover("chain.braid", CHAIN, "monitor(", 1);
    assert!(library.contains("nf monitor(") && library.contains("network function"), "{library}");
    assert_eq!(hover("chain.braid", CHAIN, "chain c", 1), "");
    let calls = MODEL.replace("seen + 1", "max(seen + 1, crc32(ip.src))");
    client.change("model.braid", &calls);
    let mut hover = |what: &str| {
        let found = client.at("textDocument/hover", "model.braid", &calls, what, 1);
        found["contents"]["value"].as_str().unwrap_or_default().to_owned()
    };
    let built_in = hover("max(");
    assert!(built_in.contains("max(a, b)") && built_in.contains("larger"), "{built_in}");
    let operator = hover("crc32(");
    assert!(operator.contains("-> crc: u32") && operator.contains("802.3"), "{operator}");
    client.end();
}

#[test]
fn definitions_are_found_across_files() {
    let mut client = both();
    let found = client.at("textDocument/definition", "chain.braid", CHAIN, "most:", 1);
    assert_eq!(found["uri"], client.uri("model.braid"));
    assert_eq!(found["range"]["start"], json!({ "line": 1, "character": 7 }));
    let found = client.at("textDocument/definition", "chain.braid", CHAIN, "limit <->", 5);
    assert_eq!(found["range"]["start"], json!({ "line": 5, "character": 2 }));
    let found = client.at("textDocument/definition", "chain.braid", CHAIN, "monitor", 0);
    assert_eq!(found, Value::Null, "the library has no file");
    client.end();
}

#[test]
fn completion_offers_names_fields_and_words() {
    let mut client = both();
    let mut labels = |text: &str, what: &str, offset: usize| -> Vec<String> {
        client.change("model.braid", text);
        let found = client.at("textDocument/completion", "model.braid", text, what, offset);
        let labels = found.as_array().expect("a list").iter().map(|item| item["label"].clone());
        labels.map(|label| label.as_str().expect("a label").to_owned()).collect()
    };
    let fields = labels(&MODEL.replace("per ip.src", "per ip."), "per ip.", 7);
    assert!(fields.contains(&"src".to_owned()) && fields.contains(&"ttl".to_owned()), "{fields:?}");
    let cut = MODEL.replace("if next > most { drop \"too many\"; }", "if ne");
    assert_eq!(labels(&cut, "if ne", 5), ["next"]);
    let words = labels(&MODEL.replace("else => output;", "else => "), "else => ", 8);
    for word in ["output", "drop", "seen", "most", "tcp.flags"] {
        assert!(words.contains(&word.to_owned()), "{word} is not in {words:?}");
    }
    let record =
        MODEL.replace("seen: u32 per ip.src = 0", "seen: { times: u32 } per ip.src = { times: 0 }");
    assert_eq!(labels(&record.replace("seen + 1", "seen."), "= seen.", 7), ["times"]);
    let parcel = "header parcel after udp { kind: u8, id: u24 }\n";
    let declared = format!("{parcel}{}", MODEL.replace("else => output;", "parcel. => output;"));
    assert_eq!(labels(&declared, "parcel. =>", 7), ["kind", "id"]);
    let outside = labels(&format!("{MODEL}\nn"), "\nn", 0);
    assert!(!outside.contains(&"seen".to_owned()));
    let args = CHAIN.replace("most: 3", "mo");
    client.change("chain.braid", &args);
    let found = client.at("textDocument/completion", "chain.braid", &args, "(mo", 3);
    let most = found.as_array().expect("a list").iter().find(|item| item["label"] == "most");
    assert_eq!(most.expect("the parameter")["insertText"], "most: ");
    client.end();
}

/// Applies the changes of an answer to a text.
fn edited(text: &str, edits: &Value) -> String {
    let mut edits: Vec<&Value> = edits.as_array().expect("a list").iter().collect();
    edits.sort_by_key(|edit| {
        let start = &edit["range"]["start"];
        (start["line"].as_u64(), start["character"].as_u64())
    });
    let mut text = text.to_owned();
    for edit in edits.into_iter().rev() {
        let byte = |position: &Value| {
            let line = usize::try_from(position["line"].as_u64().expect("a line")).unwrap();
            let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
            start + usize::try_from(position["character"].as_u64().expect("a column")).unwrap()
        };
        let range = byte(&edit["range"]["start"])..byte(&edit["range"]["end"]);
        text.replace_range(range, edit["newText"].as_str().expect("a text"));
    }
    text
}

#[test]
fn renaming_changes_all_files_and_refuses_what_would_break() {
    let mut client = both();
    let rename = |client: &mut Client, what: &str, offset: usize, new: &str| {
        let mut params = client.place("model.braid", MODEL, what, offset);
        params["newName"] = json!(new);
        client.ask("textDocument/rename", params)
    };
    let answer = rename(&mut client, "most", 0, "limit_of_packets");
    let changes = &answer["result"]["changes"];
    let model = edited(MODEL, &changes[client.uri("model.braid")]);
    let chain = edited(CHAIN, &changes[client.uri("chain.braid")]);
    assert_eq!(model, MODEL.replace("most", "limit_of_packets"));
    assert_eq!(chain, CHAIN.replace("most", "limit_of_packets"));
    let answer = rename(&mut client, "nf few", 3, "some");
    let changes = &answer["result"]["changes"];
    let model = edited(MODEL, &changes[client.uri("model.braid")]);
    assert_eq!(model, MODEL.replace("nf few", "nf some"));
    let chain = edited(CHAIN, &changes[client.uri("chain.braid")]);
    assert_eq!(chain, CHAIN.replace("few(", "some("));
    for (what, new) in
        [("most", "seen"), ("next", "seen"), ("next", "match"), ("next", "a b"), ("next", "")]
    {
        let answer = rename(&mut client, what, 0, new);
        assert!(answer["error"]["message"].is_string(), "{what} to {new}: {answer}");
    }
    let answer = rename(&mut client, "else", 0, "x");
    assert!(answer["error"]["message"].is_string());
    client.end();
}

#[test]
fn formatting_gives_the_text_of_braid_fmt() {
    let mut client = both();
    let crooked = "nf   f( ){output;}\n";
    client.change("model.braid", crooked);
    let params = |client: &Client| {
        json!({
            "textDocument": { "uri": client.uri("model.braid") },
            "options": { "tabSize": 2, "insertSpaces": true },
        })
    };
    let asked = params(&client);
    let edits = client.ask("textDocument/formatting", asked.clone())["result"].clone();
    let formatted = edited(crooked, &edits);
    client.folder.write("f.braid", crooked);
    client.folder.braid(&["fmt", "f.braid"]).code(0);
    assert_eq!(formatted, client.folder.read("f.braid"));
    client.change("model.braid", &formatted);
    assert_eq!(client.ask("textDocument/formatting", asked.clone())["result"], json!([]));
    client.change("model.braid", "nf f( {");
    assert_eq!(client.ask("textDocument/formatting", asked)["result"], Value::Null);
    client.end();
}

#[test]
fn wrong_messages_get_errors_and_the_dialogue_goes_on() {
    let mut client = Client::start(Folder::new());
    assert_eq!(client.ask("textDocument/hover", json!({}))["error"]["code"], -32002);
    client.ask("initialize", json!("nonsense"));
    client.write(b"Content-Length: 3\r\n\r\n{]}");
    assert_eq!(client.receive()["error"]["code"], -32700);
    client.send(&json!([1, 2]));
    assert_eq!(client.receive()["error"]["code"], -32600);
    client.send(&json!({ "id": 7 }));
    assert_eq!(client.receive()["error"]["code"], -32600);
    assert_eq!(client.ask("no/method", json!({}))["error"]["code"], -32601);
    assert_eq!(client.ask("textDocument/hover", json!({ "x": 1 }))["error"]["code"], -32602);
    assert_eq!(client.ask("initialize", json!({}))["error"]["code"], -32600);
    client.tell("textDocument/didOpen", json!(7));
    assert_eq!(client.receive()["method"], "window/logMessage");
    client.tell(
        "textDocument/didChange",
        json!({
            "textDocument": { "uri": "file:///none", "version": 1 }, "contentChanges": [],
        }),
    );
    assert_eq!(client.receive()["method"], "window/logMessage");
    client.send(&json!({ "id": 9, "result": null }));
    client.tell("no/notification", json!({}));
    let nowhere = json!({
        "textDocument": { "uri": "file:///none" }, "position": { "line": 4_000_000_000_u32, "character": 9 },
    });
    for method in ["hover", "completion", "definition"] {
        let answer = client.ask(&format!("textDocument/{method}"), nowhere.clone());
        assert!(answer.get("result").is_some(), "{answer}");
    }
    client.end();
}

#[test]
fn hostile_documents_give_diagnostics() {
    let mut client = both();
    let deep = format!("nf f() {{ {}", "if true { ".repeat(100_000));
    let huge = "// x\n".repeat(1 << 20);
    let odd = "nf f(\u{0}\u{202e}𝒳 { match { \"".to_owned();
    for text in [deep.as_str(), &huge, &odd, "use \"/dev/zero\";", "use \"model.braid\";", ""] {
        client.change("model.braid", text);
        let found = client.diagnostics("model.braid");
        assert!(!found.is_empty() || text.is_empty(), "{text:.60}");
        let hover = client.at("textDocument/hover", "model.braid", text, "", 0);
        assert_eq!(hover, Value::Null);
    }
    client.end();
}

#[test]
fn wrong_lengths_end_the_server_with_a_message() {
    for bytes in ["Content-Length: 99999999999999\r\n\r\n{}", "hello\r\n\r\n", "X: y\r\n\r\n"] {
        let mut client = Client::start(Folder::new());
        client.write(bytes.as_bytes());
        drop(client.child.stdin.take());
        let output = client.child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(3), "{bytes}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.starts_with("braid: standard input: "), "{message}");
    }
    let mut client = Client::start(Folder::new());
    drop(client.child.stdin.take());
    assert_eq!(client.child.wait().expect("it ends").code(), Some(1), "without shutdown and exit");
}

/// The languages of the extension and of the parser have the same words.
#[test]
fn grammar_of_the_extension_knows_all_words() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/vscode");
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(folder.join(name)).expect(name);
        serde_json::from_str(&text).expect(name)
    };
    let package = read("package.json");
    for name in [
        &package["main"],
        &package["contributes"]["languages"][0]["configuration"],
        &package["contributes"]["grammars"][0]["path"],
    ] {
        assert!(folder.join(name.as_str().expect("a path")).is_file(), "{name}");
    }
    let grammar = read("syntaxes/braid.tmLanguage.json").to_string();
    let parts: Vec<&str> =
        grammar.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let words = braid_lang::index::words();
    let numbered =
        |word: &&str| word.strip_prefix('u').is_some_and(|rest| rest.parse::<u16>().is_ok());
    let types = words.types.iter().filter(|word| !numbered(word));
    for word in words.keywords.iter().chain(types) {
        assert!(parts.contains(word), "the grammar lacks {word}");
    }
    for info in braid_packet::field::FIELDS {
        let header = info.name.split('.').next().expect("a header");
        assert!(parts.contains(&header), "the grammar lacks {header}");
    }
}
