package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

// notServed returns a plan that fails for a catalog.
func notServed(stalled string) (inspect.Plan, error) {
	plan := inspect.Plan{}
	plan.Err = fmt.Errorf("walking: %w", &controller.NotServedError{Catalog: "new", Stalled: stalled})
	return plan, errors.New("no bundle is chosen")
}

// TestWaitsForACatalog covers a user who adds a catalog and installs from it at once.
func TestWaitsForACatalog(t *testing.T) {
	t.Parallel()
	const waiting = `Waiting: the controller pulls catalog "new"` + "\n"
	for name, test := range map[string]struct {
		results []string // of each try: served, pulled, or why it is stalled
		expired bool
		tries   int
		told    string
		err     string
	}{
		"served":            {results: []string{"served"}, tries: 1},
		"served later":      {results: []string{"pulled", "pulled", "served"}, tries: 3, told: waiting},
		"stalled":           {results: []string{"pulled", "no such image"}, tries: 2, told: waiting, err: `catalog "new" is not served: no such image`},
		"the time has past": {results: []string{"pulled"}, expired: true, tries: 1, told: waiting, err: "no bundle is chosen. Is the controller running?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			interval := time.Nanosecond
			if test.expired {
				cancel()
				interval = time.Hour
			}
			var told strings.Builder
			tries := 0
			_, err := whenServed(ctx, &told, interval, func(*ocv1.ClusterExtension) (inspect.Plan, error) {
				tries++
				switch result := test.results[tries-1]; result {
				case "served":
					return inspect.Plan{}, nil
				case "pulled":
					return notServed("")
				default:
					return notServed(result)
				}
			})(nil)
			if tries != test.tries || told.String() != test.told || (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("%d tries, told %q, error %v", tries, told.String(), err)
			}
		})
	}
}

// TestWatchesItsOwnNamespace covers an operator without the install mode AllNamespaces. A new user
// does not expect that --watch-namespace is required.
func TestWatchesItsOwnNamespace(t *testing.T) {
	t.Parallel()
	refusal := &bundle.ConfigError{Problems: []string{"refused"}}
	for name, test := range map[string]struct {
		wish  wish
		takes string // the configuration that the bundle takes
		want  string // the configuration of the plan; empty for an error
		tries int
	}{
		"all namespaces":           {wish: wish{pkg: "p"}, takes: "", want: "none", tries: 1},
		"its own namespace":        {wish: wish{pkg: "p"}, takes: `{"watchNamespace":"p"}`, want: `{"watchNamespace":"p"}`, tries: 2},
		"its own, of another name": {wish: wish{pkg: "p", namespace: "ns"}, takes: `{"watchNamespace":"ns"}`, want: `{"watchNamespace":"ns"}`, tries: 2},
		"a list of one":            {wish: wish{pkg: "p", watchNamespaces: []string{"a"}}, takes: `{"watchNamespaces":["a"]}`, want: `{"watchNamespaces":["a"]}`, tries: 2},
		"another one than asked":   {wish: wish{pkg: "p", watchNamespaces: []string{"a"}}, takes: `{"watchNamespace":"p"}`, tries: 2},
		"another than its own":     {wish: wish{pkg: "p"}, takes: `{"watchNamespace":"a"}`, tries: 2},
		"several that it refuses":  {wish: wish{pkg: "p", watchNamespaces: []string{"a", "b"}}, takes: `{"watchNamespace":"p"}`, tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext, err := test.wish.extension(nil, false)
			if err != nil {
				t.Fatal(err)
			}
			tries := 0
			command := install{wish: test.wish}
			plan, err := command.plan(ext, nil, func(ext *ocv1.ClusterExtension) (inspect.Plan, error) {
				tries++
				if configOf(ext) != test.takes {
					return inspect.Plan{}, fmt.Errorf("planning: %w", refusal)
				}
				return inspect.Plan{Extension: ext}, nil
			})
			got := ""
			if err == nil {
				if got = configOf(plan.Extension); got == "" {
					got = "none"
				}
			} else if !errors.Is(err, refusal) {
				t.Errorf("got error %v", err)
			}
			if got != test.want || tries != test.tries {
				t.Errorf("got %q after %d tries, want %q after %d", got, tries, test.want, test.tries)
			}
		})
	}
}

func configOf(ext *ocv1.ClusterExtension) string {
	if ext.Spec.Config == nil || ext.Spec.Config.Inline == nil {
		return ""
	}
	return string(ext.Spec.Config.Inline.Raw)
}
