//! The server: what it answers to each message.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lsp_types as lsp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::documents::Documents;
use super::paths::path;
use super::requests;
use super::wire::Incoming;

/// Errors of JSON-RPC and of the protocol.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const NOT_INITIALIZED: i32 = -32002;
const REQUEST_FAILED: i32 = -32803;

/// How far the dialogue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    #[default]
    New,
    Ready,
    ShutDown,
}

/// The state of the dialogue.
#[derive(Default)]
pub struct Server {
    phase: Phase,
    documents: Documents,
    /// Documents whose diagnostics are out of date.
    changed: BTreeSet<String>,
    /// The files that the programs of documents asked for.
    asked: BTreeMap<String, BTreeSet<PathBuf>>,
    /// Whether the client asked for an orderly end first, once it has ended the dialogue.
    pub ended: Option<bool>,
}

/// An error as an answer.
type Refused = (i32, String);

impl Server {
    /// Handles a message. Returns the answer, if there is one.
    pub fn handle(&mut self, incoming: Incoming) -> Option<Value> {
        let message = match incoming {
            Incoming::Message(message) => message,
            Incoming::NotJson(why) => return Some(failed(&Value::Null, (PARSE_ERROR, why))),
        };
        let id = message.get("id").cloned();
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // An answer to a request of ours: there are none. All else is wrong.
            let is_answer = message.get("result").or(message.get("error")).is_some();
            let wrong = (INVALID_REQUEST, "expected a message with a method".to_owned());
            return (!is_answer).then(|| failed(&id.unwrap_or(Value::Null), wrong));
        };
        let params = message.get("params").cloned().unwrap_or(Value::Null);
        match id {
            Some(id) => Some(match self.request(method, params) {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                Err(refused) => failed(&id, refused),
            }),
            None => self.notification(method, params),
        }
    }

    /// The diagnostics of documents that have changed.
    pub fn findings(&mut self) -> Vec<Value> {
        let changed = std::mem::take(&mut self.changed);
        changed.iter().map(|uri| self.publish(uri)).collect()
    }

    fn publish(&mut self, uri: &str) -> Value {
        let (found, asked) = requests::diagnostics(&self.documents, uri);
        let mut params = json!({ "uri": uri, "diagnostics": found });
        match self.documents.version(uri) {
            Some(version) => {
                params["version"] = json!(version);
                self.asked.insert(uri.to_owned(), asked);
            }
            None => {
                self.asked.remove(uri);
            }
        }
        json!({ "jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params })
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value, Refused> {
        match (self.phase, method) {
            (Phase::New, "initialize") => return self.initialize(params),
            (Phase::New, _) => return Err((NOT_INITIALIZED, "initialize comes first".to_owned())),
            (Phase::ShutDown, _) => return Err((INVALID_REQUEST, "the server ends".to_owned())),
            (Phase::Ready, _) => {}
        }
        let documents = &self.documents;
        match method {
            "shutdown" => {
                self.phase = Phase::ShutDown;
                Ok(Value::Null)
            }
            "textDocument/hover" => {
                let params: lsp::HoverParams = read(params)?;
                show(&requests::hover(documents, &params.text_document_position_params))
            }
            "textDocument/completion" => {
                let params: lsp::CompletionParams = read(params)?;
                show(&requests::completion(documents, &params.text_document_position))
            }
            "textDocument/definition" => {
                let params: lsp::GotoDefinitionParams = read(params)?;
                show(&requests::definition(documents, &params.text_document_position_params))
            }
            "textDocument/rename" => {
                let params: lsp::RenameParams = read(params)?;
                let at = &params.text_document_position;
                let edit = requests::renamed(documents, at, &params.new_name);
                show(&edit.map_err(|why| (REQUEST_FAILED, why))?)
            }
            "textDocument/formatting" => {
                let params: lsp::DocumentFormattingParams = read(params)?;
                show(&requests::formatted(documents, params.text_document.uri.as_str()))
            }
            "initialize" => Err((INVALID_REQUEST, "the server is initialized".to_owned())),
            _ => Err((METHOD_NOT_FOUND, format!("there is no method {method}"))),
        }
    }

    fn initialize(&mut self, params: Value) -> Result<Value, Refused> {
        // Only the folders matter, and clients send a lot besides.
        let folders = params.get("workspaceFolders").and_then(Value::as_array);
        let folders = folders.into_iter().flatten().filter_map(|folder| folder.get("uri"));
        let uris = folders.chain(params.get("rootUri")).filter_map(Value::as_str);
        self.documents.folders = uris.filter_map(path).collect();
        self.documents.folders.sort();
        self.documents.folders.dedup();
        self.phase = Phase::Ready;
        Ok(json!({
            "capabilities": {
                "textDocumentSync": { "openClose": true, "change": 1 },
                "hoverProvider": true,
                "completionProvider": { "triggerCharacters": ["."] },
                "definitionProvider": true,
                "renameProvider": true,
                "documentFormattingProvider": true,
            },
            "serverInfo": { "name": "braid", "version": env!("CARGO_PKG_VERSION") },
        }))
    }

    /// Handles a notification. Returns a message for the user, if something is wrong.
    fn notification(&mut self, method: &str, params: Value) -> Option<Value> {
        if method == "exit" {
            self.ended = Some(self.phase == Phase::ShutDown);
            return None;
        }
        if self.phase != Phase::Ready {
            return None;
        }
        let done = match method {
            "textDocument/didOpen" => {
                read(params).and_then(|params: lsp::DidOpenTextDocumentParams| {
                    let document = params.text_document;
                    self.set(document.uri.as_str(), document.text, document.version)
                })
            }
            "textDocument/didChange" => read(params)
                .and_then(|params: lsp::DidChangeTextDocumentParams| self.change(params)),
            "textDocument/didClose" => {
                read(params).map(|params: lsp::DidCloseTextDocumentParams| {
                    let uri = params.text_document.uri.as_str();
                    self.documents.close(uri);
                    self.touch(uri);
                })
            }
            _ => Ok(()),
        };
        done.err().map(|(_, why)| {
            let params = json!({ "type": 1, "message": format!("{method}: {why}") });
            json!({ "jsonrpc": "2.0", "method": "window/logMessage", "params": params })
        })
    }

    /// Takes the whole new text, because the server asks for whole texts.
    fn change(&mut self, params: lsp::DidChangeTextDocumentParams) -> Result<(), Refused> {
        let wrong = |why: &str| (INVALID_PARAMS, why.to_owned());
        let uri = params.text_document.uri.as_str();
        self.documents.text(uri).ok_or_else(|| wrong("the document is not open"))?;
        let last = params.content_changes.into_iter().next_back();
        let last = last.ok_or_else(|| wrong("there is no change"))?;
        match last.range {
            None => self.set(uri, last.text, params.text_document.version),
            Some(_) => Err(wrong("expected the whole text")),
        }
    }

    fn set(&mut self, uri: &str, text: String, version: i32) -> Result<(), Refused> {
        if !self.documents.set(uri, text, version) {
            return Err((REQUEST_FAILED, "too many documents are open".to_owned()));
        }
        self.touch(uri);
        Ok(())
    }

    /// A document has changed, and with it the programs that use it.
    fn touch(&mut self, uri: &str) {
        self.changed.insert(uri.to_owned());
        let Some(path) = path(uri) else { return };
        let using = self.asked.iter().filter(|(_, asked)| asked.contains(&path));
        self.changed.extend(using.map(|(uri, _)| uri.clone()));
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Refused> {
    serde_json::from_value(params).map_err(|why| (INVALID_PARAMS, why.to_string()))
}

fn show(result: &impl Serialize) -> Result<Value, Refused> {
    serde_json::to_value(result).map_err(|why| (REQUEST_FAILED, why.to_string()))
}

fn failed(id: &Value, (code, message): Refused) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}
