package catalogclient_test

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

func folder(files map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

// A folder gives the packages that its server would give.
func TestLoad(t *testing.T) {
	t.Parallel()
	c := newClient(t, catalogclient.Config{})
	root := folder(map[string]string{
		"p/channel.json": packageP + channelP,
		"p/bundle.json":  bundleP,
		"q.yaml":         "schema: olm.package\nname: q\n---\nschema: olm.bundle\npackage: q\nname: q.v1\nimage: [1]\n",
		"README.md":      "# Not of the catalog\n",
		".indexignore":   "*.md\n",
	})
	if err := c.Load(t.Context(), "c", root); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantP(), mustPackage(t, c, "p")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, err := c.Package("c", "q"); !as[*catalogclient.MalformedPackageError](err) {
		t.Errorf("got %v for a malformed package", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		match func(error) bool
	}{
		"a file that ends early": {
			map[string]string{"a.json": packageQ, "b.json": `{"schema":`}, as[*fbc.FileError],
		},
		"an object without identity": {
			map[string]string{"a.json": packageQ, "b.json": `{"schema":"olm.bundle","package":7}`}, as[*fbc.FileError],
		},
		"an empty folder": {
			nil, func(err error) bool { return errors.Is(err, catalogclient.ErrEmptyCatalog) },
		},
		"an index that is too large": {
			map[string]string{"a.json": packageP + bundleP}, as[*fbc.LimitError],
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, catalogclient.Config{Limits: catalogclient.Limits{KeptBytes: 1 << 10}})
			if err := c.Load(t.Context(), "c", folder(tt.files)); !tt.match(err) {
				t.Fatalf("got error %v of another kind", err)
			}
			if _, err := c.Package("c", "q"); !as[*catalogclient.NotLoadedError](err) {
				t.Errorf("the catalog is there in part: %v", err)
			}
		})
	}
}

func TestLoadEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := newClient(t, catalogclient.Config{})
	if err := c.Load(ctx, "c", folder(map[string]string{"a.json": packageQ})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
