// Package fetch has workers of its own for what comes from outside, so that nobody
// waits for it who has other things to do: a wish goes in, and who has made it is
// woken when it has come to something, well or not.
//
// What is outside may take as long as it wants to, and who wishes may name it. So
// none of them gets all workers: those of one registry and those of one author are
// bounded, the latter the more the fewer are left. What each has to wait for is then
// what it has asked for itself.
package fetch
