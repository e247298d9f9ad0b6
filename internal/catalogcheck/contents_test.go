package catalogcheck_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogcheck"
)

const head = `{"schema":"olm.package","name":"web","defaultChannel":"c"}
{"schema":"olm.channel","package":"web","name":"c","entries":[{"name":"web.v1.0.0"}]}
`

// entry is a bundle of version 1.0.0 with further properties.
func entry(properties string) string {
	return `{"schema":"olm.bundle","package":"web","name":"web.v1.0.0","image":"oci.test/web:1.0.0","properties":[` +
		`{"type":"olm.package","value":{"packageName":"web","version":"1.0.0"}}` + properties + "]}\n"
}

// TestContents holds what is in the images of bundles against the catalog.
func TestContents(t *testing.T) {
	t.Parallel()
	const (
		place   = `catalog.yaml: object 3, schema "olm.bundle", package "web", name "web.v1.0.0": `
		ranged  = `,{"type":"clusterextensions.dev/kubeVersion","value":">=1.25.0-0"}`
		unknown = `,{"type":"clusterextensions.dev/kubeVersion","value":"new"}`
		number  = `,{"type":"clusterextensions.dev/kubeVersion","value":1.25}`
	)
	web := bundle.Identity{Package: "web", Name: "web.v1.0.0", Version: "1.0.0"}
	for name, test := range map[string]struct {
		properties string
		content    catalogcheck.Content
		err        error
		want       []string
	}{
		"nothing is wrong":       {content: catalogcheck.Content{Identity: web}},
		"a range that is stated": {properties: ranged, content: catalogcheck.Content{Identity: web, KubeVersion: ">=1.25.0-0"}},
		"no pull":                {err: errors.New("no such image"), want: []string{"error: the image cannot be looked into: no such image"}},
		"problems, and an identity that is not told": {
			content: catalogcheck.Content{Errors: []string{"chart/a.yaml: bad"}, Warnings: []string{"odd"}},
			want:    []string{"error: in the image: chart/a.yaml: bad", "warning: in the image: odd"},
		},
		"another package, and version": {
			content: catalogcheck.Content{Identity: bundle.Identity{Package: "shop", Name: "shop.v1.0.1", Version: "1.0.1"}},
			want: []string{
				`note: the image is of package "shop", which is fine if it is meant`,
				`warning: the version is "1.0.0" here, and "1.0.1" in the image`,
			},
		},
		"a range that is not stated": {
			content: catalogcheck.Content{Identity: web, KubeVersion: ">=1.25.0-0"},
			want:    []string{`warning: the chart wants Kubernetes ">=1.25.0-0", and no property clusterextensions.dev/kubeVersion says so: it is chosen for clusters of other versions too, where it waits`},
		},
		"another range": {
			properties: ranged, content: catalogcheck.Content{Identity: web, KubeVersion: ">=1.30.0-0"},
			want: []string{`warning: the chart wants Kubernetes ">=1.30.0-0", and no property clusterextensions.dev/kubeVersion says so: it is chosen for clusters of other versions too, where it waits`},
		},
		"a range that is none": {
			properties: unknown, content: catalogcheck.Content{Identity: web},
			want: []string{`error: the value of property clusterextensions.dev/kubeVersion cannot be read, and nothing meets it: "new" is no range of versions: improper constraint: "new"`},
		},
		"a range that is a number": {
			properties: number, content: catalogcheck.Content{Identity: web},
			want: []string{`error: the value of property clusterextensions.dev/kubeVersion is not a string but a number, and nothing meets it`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			problems, err := catalogcheck.Check(t.Context(), catalogOf(head+entry(test.properties)), func(_ context.Context, ref string) (catalogcheck.Content, error) {
				if ref != "oci.test/web:1.0.0" {
					t.Errorf("looked into %s", ref)
				}
				return test.content, test.err
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, problem := range problems {
				got = append(got, strings.TrimPrefix(problem.String(), place))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestContentsThatAreNotLookedInto are those of bundles that cannot be pulled at all, which is told.
func TestContentsThatAreNotLookedInto(t *testing.T) {
	t.Parallel()
	for _, image := range []string{`""`, `"web"`, `1`} {
		catalog := catalogOf(head + strings.Replace(entry(""), `"oci.test/web:1.0.0"`, image, 1))
		problems, err := catalogcheck.Check(t.Context(), catalog, func(context.Context, string) (catalogcheck.Content, error) {
			t.Errorf("image %s is looked into", image)
			return catalogcheck.Content{}, nil
		})
		if err != nil || len(problems) != 1 {
			t.Errorf("%s: %q, %v", image, problems, err)
		}
	}
}

// TestImagesAreBounded has as many images as are looked into, and one more.
func TestImagesAreBounded(t *testing.T) {
	t.Parallel()
	const most = 5000
	for _, count := range []int{most, most + 1} {
		var text strings.Builder
		for i := range count {
			fmt.Fprintf(&text, `{"schema":"olm.bundle","package":"p","name":"p.%[1]d","image":"oci.test/p:%[1]d",`+
				`"properties":[{"type":"olm.package","value":{"packageName":"p","version":"1.0.%[1]d"}}]}`, i)
		}
		looked, told := 0, 0
		problems, err := catalogcheck.Check(t.Context(), catalogOf(text.String()), func(context.Context, string) (catalogcheck.Content, error) {
			looked++
			return catalogcheck.Content{}, nil
		})
		for _, problem := range problems {
			if problem.String() == "warning: only the first 5000 images were looked into" {
				told++
			}
		}
		if err != nil || looked != most || told != count-most {
			t.Errorf("of %d images, %d were looked into, and it is told %d times: %v", count, looked, told, err)
		}
	}
}

// TestLookingEnds with whoever has asked.
func TestLookingEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := catalogcheck.Check(ctx, catalogOf(head+entry("")), func(ctx context.Context, _ string) (catalogcheck.Content, error) {
		cancel()
		return catalogcheck.Content{}, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}
