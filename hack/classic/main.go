// Command classic is classic OLM of one version as a program that opens no port: its two
// operators, and a server for catalogs that takes an address. The commands of the module
// serve metrics on port 8080 of every interface, which none of their flags changes, so
// this calls the same packages in the same way, and leaves those servers out.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/operator-framework/operator-lifecycle-manager/pkg/lib/signals"
)

var commands = map[string]func(ctx context.Context, args []string) error{
	"olm":     runOLM,
	"catalog": runCatalog,
	"serve":   serve,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: classic olm|catalog|serve [flags]")
		os.Exit(2)
	}
	// The API server knows who has written a field by the name of the program.
	os.Args = os.Args[1:]
	if err := commands[os.Args[0]](signals.Context(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(1)
	}
}
