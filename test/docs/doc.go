// Package docs reads the pages of the documentation as a shell and an API server
// would: it finds the commands and manifests on a page, and holds what commands print
// against what the page shows. Its test carries out every page.
//
// Of the fenced blocks of a page
//
//   - those without a language, or with sh, are commands; where lines begin with "$ ",
//     these are the commands, and the others are what they print,
//   - those with yaml are manifests, or files for the commands that follow,
//   - those with mermaid are what the command above prints,
//   - those with another language of [Prose] are not for a machine.
package docs
