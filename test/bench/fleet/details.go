package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// details are what explains a result. Nothing is written without a directory,
// and nothing is profiled: that costs time, too.
type details struct {
	dir     string
	address string // of the controller's profiles
}

// arguments are those that the controller is started with.
func (d *details) arguments() ([]string, error) {
	if d.dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(d.dir, 0o750); err != nil {
		return nil, err
	}
	var err error
	d.address, err = freeAddress()
	return []string{"--pprof-bind-address=" + d.address}, err
}

// profile writes what the controller does in the next seconds. The function that
// it returns waits for that.
func (d *details) profile(ctx context.Context, name string, seconds int) (wait func() error) {
	if d.dir == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		done <- errors.Join(
			d.fetch(ctx, fmt.Sprintf("profile?seconds=%d", seconds), name+".cpu"),
			d.fetch(ctx, "heap?gc=1", name+".heap"),
			d.fetch(ctx, "goroutine?debug=1", name+".goroutines"),
		)
	}()
	return func() error { return <-done }
}

func (d *details) fetch(ctx context.Context, what, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.address+"/debug/pprof/"+what, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return d.write(name, content)
}

// requests writes how many there were of each kind, for one extension.
func (d *details) requests(name string, requests []environment.Request, extensions int) error {
	if d.dir == "" {
		return nil
	}
	counts := map[string]int{}
	for _, r := range requests {
		counts[r.Kind()]++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var text strings.Builder
	for _, kind := range kinds {
		fmt.Fprintf(&text, "%7.2f %s\n", float64(counts[kind])/float64(extensions), kind)
	}
	return d.write(name+".requests", []byte(text.String()))
}

func (d *details) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(d.dir, name), content, 0o600)
}
