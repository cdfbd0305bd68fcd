// Starts `braid lsp` and connects the editor with it.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function activate() {
  const command = vscode.workspace.getConfiguration("braid").get("path");
  const server = { command, args: ["lsp"] };
  const options = { documentSelector: [{ language: "braid" }] };
  client = new LanguageClient("braid", "Braid", server, options);
  return client.start();
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
