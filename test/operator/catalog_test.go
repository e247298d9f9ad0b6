package operator_test

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"

	"github.com/clusterextensions/operator-controller/test/operator"
)

func loadCatalog(t *testing.T, root fs.FS) *declcfg.DeclarativeConfig {
	t.Helper()
	catalog, err := declcfg.LoadFS(t.Context(), root)
	if err != nil {
		t.Fatalf("loading the catalog: %v", err)
	}
	return catalog
}

func TestCatalogChannels(t *testing.T) {
	t.Parallel()

	model, err := declcfg.ConvertToModel(*loadCatalog(t, operator.Catalog))
	if err != nil {
		t.Fatalf("the catalog is not well-formed: %v", err)
	}
	pkg := model[operator.Package]
	if pkg == nil {
		t.Fatalf("no package %q", operator.Package)
	}
	if got := pkg.DefaultChannel.Name; got != "stable" {
		t.Errorf("default channel is %q, want stable", got)
	}

	got := map[string]string{}
	for name, channel := range pkg.Channels {
		head, err := channel.Head()
		if err != nil {
			t.Errorf("channel %q: %v", name, err)
			continue
		}
		got[name] = head.Name
	}
	want := map[string]string{
		"stable":    "sample-operator.v1.1.0",
		"candidate": "sample-operator.v2.0.0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("channel heads (-want +got):\n%s", diff)
	}
}

func TestCatalogOffersEveryBundle(t *testing.T) {
	t.Parallel()

	var offered []string
	for _, b := range loadCatalog(t, operator.Catalog).Bundles {
		properties, err := property.Parse(b.Properties)
		if err != nil || len(properties.Packages) != 1 {
			t.Errorf("bundle %q: want one package property, got %v, %v", b.Name, properties, err)
			continue
		}
		version := properties.Packages[0].Version
		if b.Image != operator.Image(version) {
			t.Errorf("bundle %q: image is %q, want %q", b.Name, b.Image, operator.Image(version))
		}
		if want := readBundle(t, version).csv.Name; b.Name != want {
			t.Errorf("bundle of version %s is %q in the catalog and %q in its image", version, b.Name, want)
		}
		offered = append(offered, version)
	}
	slices.Sort(offered)
	if diff := cmp.Diff(versions(t), offered); diff != "" {
		t.Errorf("versions with a bundle and versions in the catalog (-bundle +catalog):\n%s", diff)
	}
}

func TestDeprecationsNameWhatTheCatalogHas(t *testing.T) {
	t.Parallel()

	catalog := loadCatalog(t, operator.Catalog)
	known := map[declcfg.PackageScopedReference]bool{}
	for _, c := range catalog.Channels {
		known[declcfg.PackageScopedReference{Schema: declcfg.SchemaChannel, Name: c.Name}] = true
	}
	for _, b := range catalog.Bundles {
		known[declcfg.PackageScopedReference{Schema: declcfg.SchemaBundle, Name: b.Name}] = true
	}

	deprecations := loadCatalog(t, operator.Deprecations).Deprecations
	if len(deprecations) != 1 || len(deprecations[0].Entries) == 0 {
		t.Fatalf("want one deprecations object with entries, got %v", deprecations)
	}
	for _, entry := range deprecations[0].Entries {
		if !known[entry.Reference] {
			t.Errorf("deprecation of %v, which the catalog does not have", entry.Reference)
		}
		if entry.Message == "" {
			t.Errorf("deprecation of %v says nothing", entry.Reference)
		}
	}
}
