// Package installation has the values that the controller and the applier exchange about
// the content of an extension: what is installed, what is to be, and what an operation
// came to. It decides nothing and asks nobody.
package installation
