package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

// What a search of the largest public catalog may take, over the wire and in the tool.
const (
	searchSeconds   = 1
	searchMegabytes = 2
	searchPeakMiB   = 100
)

// search has the tool serve a catalog, and measures how it is searched by another process that
// knows nothing of it.
func (b bench) search(ctx context.Context) error {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return err
	}
	tool := filepath.Join(b.dir, "kubectl-extension")
	build := exec.CommandContext(ctx, "go", "build", "-o", tool, "./cmd/kubectl-extension") //nolint:gosec // the path is our own
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	folder, err := b.writeCatalog()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served, wait, err := serveCatalog(ctx, tool, folder)
	if err != nil {
		return err
	}
	defer wait()
	defer cancel()
	wire, err := newWire(ctx, served)
	if err != nil {
		return err
	}
	found := exec.CommandContext(ctx, tool, "catalog", "search", "postgres", "--catalog", wire.url) //nolint:gosec // the path is our own
	found.Stderr = os.Stderr
	began := time.Now()
	if _, err := found.Output(); err != nil {
		return fmt.Errorf("searching: %w", err)
	}
	took := time.Since(began).Seconds()
	used, ok := found.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("what the search took is not known")
	}
	const name, kibi, mega = "search one catalog", 1 << 10, 1e6
	return errors.Join(
		b.report.Check(name, "seconds", took, searchSeconds),
		b.report.Check(name, "megabytes", float64(wire.bytes.Load())/mega, searchMegabytes),
		b.report.Check(name, "peak-MiB", measure.Mebibytes(used.Maxrss*kibi), searchPeakMiB),
	)
}

func (b bench) writeCatalog() (folder string, err error) {
	folder = filepath.Join(b.dir, "searched")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	file, err := os.Create(filepath.Join(folder, "catalog.json"))
	if err != nil {
		return "", err
	}
	_, err = testkit.PublicCatalog(1).WriteTo(file)
	return folder, errors.Join(err, file.Close())
}

// serveCatalog gives the URL of a catalog that is served until ctx ends; wait is for that.
func serveCatalog(ctx context.Context, tool, folder string) (served *url.URL, wait func(), err error) {
	server := exec.CommandContext(ctx, tool, "catalog", "serve", folder, "--address", "127.0.0.1:0") //nolint:gosec // the path is our own
	server.Stderr = os.Stderr
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	output, err := server.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := server.Start(); err != nil {
		return nil, nil, err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err == nil {
		served, err = url.Parse(strings.TrimSpace(line))
	}
	return served, func() { _ = server.Wait() }, err // it was interrupted
}

// wire is a connection to a server on which bytes are counted, in both directions.
type wire struct {
	url   string
	bytes atomic.Int64
}

// newWire listens until ctx ends.
func newWire(ctx context.Context, to *url.URL) (*wire, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	from := *to
	from.Host = listener.Addr().String()
	w := &wire{url: from.String()}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(ctx, "tcp", to.Host)
			if err != nil {
				_ = near.Close()
				continue
			}
			go w.carry(near, far)
			go w.carry(far, near)
		}
	}()
	return w, nil
}

func (w *wire) carry(from, to net.Conn) {
	_, _ = io.Copy(to, io.TeeReader(from, w)) // whoever ends it is done
	_ = to.Close()
}

func (w *wire) Write(data []byte) (int, error) {
	w.bytes.Add(int64(len(data)))
	return len(data), nil
}
