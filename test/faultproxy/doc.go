// Package faultproxy stands between a controller and the API server and makes
// trouble where a test wants it: it holds a controller's writes at a chosen one,
// answers with errors, cuts connections, and keeps a journal of what was
// written. What it is not told to spoil passes as it is, watches included.
//
// Clients that come through it authenticate with tokens; certificates do not
// pass.
package faultproxy
