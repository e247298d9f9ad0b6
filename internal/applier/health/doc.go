// Package health says how the objects of a release are doing that run something: live
// objects -> available or not, and why. It is pure.
package health
