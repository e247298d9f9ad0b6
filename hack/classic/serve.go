package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"

	"github.com/operator-framework/operator-registry/pkg/api"
	"github.com/operator-framework/operator-registry/pkg/cache"
	"github.com/operator-framework/operator-registry/pkg/server"
	"google.golang.org/grpc"
	health "google.golang.org/grpc/health/grpc_health_v1"
)

// inherited is the descriptor of the socket to serve on, which who starts this has opened: so
// the address is known before, and stays the same with another catalog.
const inherited = 3

// serve offers the catalog in a folder, as opm serve does on every interface. What is in the
// folder is read once.
func serve(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	folder := flags.String("folder", "", "the file-based catalog")
	_ = flags.Parse(args) // exits

	scratch, err := os.MkdirTemp("", "classic-catalog-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	store, err := cache.New(scratch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := cache.LoadOrRebuild(ctx, store, os.DirFS(*folder)); err != nil {
		return fmt.Errorf("reading the catalog in %s: %w", *folder, err)
	}
	listener, err := net.FileListener(os.NewFile(inherited, "socket"))
	if err != nil {
		return err
	}
	serving := grpc.NewServer()
	api.RegisterRegistryServer(serving, server.NewRegistryServer(store))
	health.RegisterHealthServer(serving, server.NewHealthServer())
	context.AfterFunc(ctx, serving.Stop)
	return serving.Serve(listener)
}
