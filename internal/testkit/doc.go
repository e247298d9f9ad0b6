// Package testkit holds what tests of several packages share: an image
// registry in this process, builders and checkers. Production code never
// imports it.
package testkit
