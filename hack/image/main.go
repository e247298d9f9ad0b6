// Command image has ko make the image of the controller: a command line of ko -> an
// OCI image layout with a name, a registry if one is named, and the digest on standard
// output.
//
// ko takes the base from a registry only. A base below base.localhost is our own, of a few
// files: it is made here, and served to ko alone, so that no network is needed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

type options struct {
	// layout is the directory that the image is put into, in the place of the one before.
	layout string
	// name is what nodes and engines call the image when they load the layout.
	name string
	// push is the reference that the image is pushed to; empty pushes nothing.
	push string
	// ko is the command line, without the layout. Without one, the layout is taken as it is.
	ko []string
}

func main() {
	o := options{}
	flag.StringVar(&o.layout, "layout", "bin/image", "the directory of the image layout")
	flag.StringVar(&o.name, "name", "", "what the image in the layout is called")
	flag.StringVar(&o.push, "push", "", "the reference to push the image to")
	flag.Parse()
	o.ko = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	reference, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	fmt.Println(reference)
}

// run returns the image by its digest: name@digest if it was pushed, or else the digest.
func run(ctx context.Context, o options) (string, error) {
	if len(o.ko) > 0 {
		if err := replace(ctx, o); err != nil {
			return "", err
		}
	}
	image, err := openImage(o.layout)
	if err != nil {
		return "", err
	}
	if o.push == "" {
		return image.descriptor.Digest.String(), nil
	}
	return image.push(ctx, o.push)
}

// replace puts a new image into the layout, and names it.
func replace(ctx context.Context, o options) error {
	if err := clearAway(o.layout); err != nil {
		return err
	}
	if err := build(ctx, o); err != nil {
		return err
	}
	image, err := openImage(o.layout)
	if err != nil {
		return err
	}
	return image.call(o.name)
}

// clearAway removes a layout, and nothing that is none.
func clearAway(layout string) error {
	entries, err := os.ReadDir(layout)
	if os.IsNotExist(err) || (err == nil && len(entries) == 0) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(layout, "oci-layout")); err != nil {
		return fmt.Errorf("%s is to be replaced, but is no image layout: %w", layout, err)
	}
	return os.RemoveAll(layout)
}

func build(ctx context.Context, o options) error {
	ko := exec.CommandContext(ctx, o.ko[0], append(o.ko[1:], "--oci-layout-path="+o.layout)...) //nolint:gosec // the command line is ours
	ko.Env = os.Environ()
	if strings.HasPrefix(os.Getenv("KO_DEFAULTBASEIMAGE"), baseHost+"/") {
		served, err := serveBase(ctx)
		if err != nil {
			return fmt.Errorf("serving the base: %w", err)
		}
		defer served.Close()
		ko.Env = append(ko.Env, "HTTP_PROXY=http://"+served.address)
	}
	ko.Stdout, ko.Stderr = os.Stderr, os.Stderr
	if err := ko.Run(); err != nil {
		return fmt.Errorf("building the image: %w", err)
	}
	return nil
}
