// Package indexignore compares the .indexignore patterns of the controller with
// go-git, which upstream operator-controller uses to read them. The package contains
// tests only, which keeps go-git out of the programs' modules.
package indexignore
