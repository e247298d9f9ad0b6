// Package cli has what the commands of kubectl-extension share: flags, the files that
// they name, and how results are printed. The commands themselves are in packages below
// it, one for each noun. They read the command line, ask the package that knows, and
// print; they decide nothing.
package cli
