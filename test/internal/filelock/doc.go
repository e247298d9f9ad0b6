// Package filelock makes processes take turns: path -> a lock that ends with
// its holder, however the holder ends.
//
// It locks with flock(2), so the lock is a fact about an open file and never
// about a number written in one. It must not interpret what a lock protects.
package filelock
