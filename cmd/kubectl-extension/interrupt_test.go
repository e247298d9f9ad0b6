package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"
	"testing"
)

// A command that waits for what it is to read ends when it is told to.
func TestTheWaitForFilesEnds(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		{"bundle", "rbac", "-f", "-"},
		{"bundle", "rbac", "-f", pipe},
		{"crd", "check", "-", writeFile(t, fmt.Sprintf(sizeDefinition, ""))},
		{"catalog", "check", "-"},
		{"catalog", "check", pipe},
	} {
		never, _ := io.Pipe()
		command := newCommand()
		command.SetIn(never)
		command.SetArgs(args)
		if err := command.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%q: got %v, want %v", args, err, context.Canceled)
		}
	}
}
