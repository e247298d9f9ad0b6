// Command catalogs measures what catalogs of the size of the largest public one
// cost a whole process. It serves them over HTTP, has processes of their own
// read them, prints each result as a line of JSON, and fails when one is over
// its limit.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1) //nolint:gocritic // the process ends here
	}
}

func run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-catalogs-")
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler())
	defer server.Close()
	b := bench{dir: dir, url: server.URL, report: measure.NewReport(out)}
	err = b.build(ctx)
	if err == nil {
		err = errors.Join(b.measure(ctx), b.search(ctx))
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// handler serves catalogs of every size in bytes (0 stands for that of the
// largest public one) and of every number, in every revision.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{bytes}/{catalog}/{revision}/api/v1/all", func(w http.ResponseWriter, r *http.Request) {
		bytes, bytesErr := strconv.ParseInt(r.PathValue("bytes"), 10, 64)
		seed, seedErr := strconv.ParseUint(r.PathValue("catalog"), 10, 64)
		revision, revisionErr := strconv.Atoi(r.PathValue("revision"))
		if bytesErr != nil || seedErr != nil || revisionErr != nil {
			http.NotFound(w, r)
			return
		}
		catalog := testkit.PublicCatalog(seed)
		catalog.Revision = revision
		catalog.Bytes = cmp.Or(bytes, catalog.Bytes)
		// That the reader is gone is its own affair.
		_, _ = catalog.WriteTo(w)
	})
	return mux
}

// bench runs measurements one after the other.
type bench struct {
	dir, url string
	report   *measure.Report
}

func (b bench) child() string { return filepath.Join(b.dir, "child") }

func (b bench) build(ctx context.Context) error {
	const source = "github.com/clusterextensions/operator-controller/test/bench/catalogs/child"
	command := exec.CommandContext(ctx, "go", "build", "-o", b.child(), source) //nolint:gosec // the path is our own
	command.Stderr = os.Stderr
	return command.Run()
}

// measure runs every measurement, whatever the result of the others.
func (b bench) measure(ctx context.Context) error {
	floor, err := b.usage(ctx, measurement{work: "decode", catalogs: 1, workers: 1})
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range measurements() {
		used, err := b.usage(ctx, m)
		if err != nil {
			return err
		}
		perCatalog := used.CPUSeconds / float64(m.catalogs)
		errs = append(errs,
			b.tell(m, "cpu-seconds/catalog", perCatalog, m.cpuSeconds),
			b.tell(m, "cpu-to-encoding-json-ratio", perCatalog/floor.CPUSeconds, 0),
			b.tell(m, "peak-MiB", measure.Mebibytes(used.PeakBytes), m.peakMiB),
			b.tell(m, "resident-MiB", measure.Mebibytes(used.ResidentBytes), m.residentMiB),
			b.tell(m, "live-heap-MiB", measure.Mebibytes(used.LiveBytes), 0),
		)
	}
	return errors.Join(errs...)
}

// usage has a process of its own do the work.
func (b bench) usage(ctx context.Context, m measurement) (usage, error) {
	command := exec.CommandContext(ctx, b.child(), "-url", fmt.Sprintf("%s/%d", b.url, m.bytes), //nolint:gosec // the path is our own
		"-work", m.work, "-catalogs", strconv.Itoa(m.catalogs), "-workers", strconv.Itoa(m.workers),
		"-dir", filepath.Join(b.dir, cmp.Or(m.after, m.name)))
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return usage{}, fmt.Errorf("work %q: %w", m.work, err)
	}
	var used usage
	err = json.Unmarshal(output, &used)
	return used, err
}

// tell prints a result; zero stands for no limit.
func (b bench) tell(m measurement, metric string, value, limit float64) error {
	if limit == 0 {
		return b.report.Tell(m.name, metric, value)
	}
	return b.report.Check(m.name, metric, value, limit)
}
