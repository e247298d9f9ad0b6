package resolve_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// question to the reference implementation, with its answer.
type question struct {
	Package   string         `json:"package"`
	Installed *namedVersion  `json:"installed"`
	Version   string         `json:"version"`
	Channels  []string       `json:"channels"`
	Policy    resolve.Policy `json:"policy"`

	Want  *namedVersion `json:"want"`
	Error string        `json:"error"`
}

type namedVersion struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (q question) request(t testing.TB) resolve.Request {
	t.Helper()
	request := resolve.Request{
		Package:  q.Package,
		Range:    mustRange(t, q.Version),
		Channels: q.Channels,
		Policy:   q.Policy,
	}
	if q.Installed != nil {
		request.Installed = &bundle.Identity{Package: q.Package, Name: q.Installed.Name, Version: q.Installed.Version}
	}
	return request
}

// TestCorpus holds every answer and every message against the reference
// implementation's. Its answers do not hold requirements against a bundle.
func TestCorpus(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	packages, questions := loadCorpus(t)
	texts := 0
	for i, q := range questions {
		got, err := resolve.Resolve(q.request(t), packages[q.Package])
		switch {
		case q.Want != nil && err != nil:
			t.Errorf("question %d %+v: %v, want %s", i, q, err, q.Want.Name)
		case q.Want != nil:
			if got.Identity.Name != q.Want.Name || got.Identity.Version != q.Want.Version {
				t.Errorf("question %d %+v: %s %s, want %s %s", i, q, got.Identity.Name, got.Identity.Version, q.Want.Name, q.Want.Version)
			}
		case err == nil:
			t.Errorf("question %d %+v: %s, want %q", i, q, got.Identity.Name, q.Error)
		case err.Error() != q.Error:
			t.Errorf("question %d: message %q, want %q", i, err, q.Error)
		default:
			texts++
		}
	}
	t.Logf("%d questions, %d of them with the same message", len(questions), texts)
}

func BenchmarkCorpus(b *testing.B) {
	packages, questions := loadCorpus(b)
	requests := make([]resolve.Request, len(questions))
	for i, q := range questions {
		requests[i] = q.request(b)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		request := requests[i%len(requests)]
		_, _ = resolve.Resolve(request, packages[request.Package])
	}
}

func loadCorpus(t testing.TB) (map[string][]resolve.Catalog, []question) {
	t.Helper()
	dir := testkit.Corpus(t)
	config, err := declcfg.LoadFS(t.Context(), os.DirFS(filepath.Join(dir, "catalog")))
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string][]resolve.Catalog{}
	for name, p := range fromConfig(t, config) {
		packages[name] = []resolve.Catalog{{Name: "corpus", Package: resolve.Prepare(*p)}}
	}
	return packages, testkit.CorpusLines[question](t, filepath.Join(dir, "resolve.jsonl"))
}

// fromConfig are the packages of a catalog by name.
func fromConfig(t testing.TB, config *declcfg.DeclarativeConfig) map[string]*resolve.Package {
	t.Helper()
	packages := map[string]*resolve.Package{}
	in := func(name string) *resolve.Package {
		if packages[name] == nil {
			packages[name] = &resolve.Package{Name: name}
		}
		return packages[name]
	}
	for _, c := range config.Channels {
		p := in(c.Package)
		converted := resolve.Channel{Name: c.Name}
		for _, e := range c.Entries {
			converted.Entries = append(converted.Entries, resolve.Entry{Name: e.Name, Replaces: e.Replaces, Skips: &resolve.Skips{Bundles: e.Skips, Range: e.SkipRange}})
		}
		p.Channels = append(p.Channels, converted)
	}
	for _, b := range config.Bundles {
		p := in(b.Package)
		p.Bundles = append(p.Bundles, fromBundle(t, b))
	}
	for _, d := range config.Deprecations {
		p := in(d.Package)
		for _, e := range d.Entries {
			p.Deprecations = append(p.Deprecations, resolve.Deprecation{
				Scope: resolve.Scope(e.Reference.Schema), Name: e.Reference.Name, Message: e.Message,
			})
		}
	}
	return packages
}

func fromBundle(t testing.TB, b declcfg.Bundle) resolve.Bundle {
	t.Helper()
	converted := resolve.Bundle{Name: b.Name, Image: b.Image}
	for _, property := range b.Properties {
		if property.Type == "olm.package" && converted.Version == "" {
			var value struct {
				Version string `json:"version"`
			}
			if err := json.Unmarshal(property.Value, &value); err != nil {
				t.Fatal(err)
			}
			converted.Version = value.Version
		}
		facts := factsOf(&converted)
		facts.Properties = append(facts.Properties, &requirement.Property{Type: property.Type, Value: property.Value})
	}
	return converted
}
