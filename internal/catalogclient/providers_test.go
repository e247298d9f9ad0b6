package catalogclient_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func TestProviders(t *testing.T) {
	t.Parallel()
	bundle := func(pkg, name, properties string) string {
		return fmt.Sprintf(`{"schema":"olm.bundle","package":%q,"name":%q,"properties":[%s]}`, pkg, name, properties)
	}
	const (
		provides = `{"type":"olm.gvk","value":{"group":"g","version":"v1","kind":"A"}}`
		requires = `{"type":"olm.gvk.required","value":{"group":"g","version":"v1","kind":"A"}}`
		another  = `{"type":"olm.gvk","value":{"group":"g","version":"v2","kind":"A"}}`
		broken   = `{"type":"olm.gvk","value":["g","v1","A"]}`
	)
	s := newServer(t, content(
		bundle("once", "once.v1", another)+bundle("once", "once.v2", broken+","+provides)+
			bundle("always", "always.v1", provides)+bundle("always", "always.v2", provides)+
			bundle("never", "never.v1", requires+","+another)+bundle("never", "never.v2", "")))
	c := newClient(t, catalogclient.Config{})
	mustRefresh(t, c, s.source("d1"))
	src := s.source("d1")
	src.Catalog = "b"
	mustRefresh(t, c, src)

	want := []resolve.Provider{
		{Catalog: "b", Package: "always"},
		{Catalog: "b", Package: "once"},
		{Catalog: "c", Package: "always"},
		{Catalog: "c", Package: "once"},
	}
	if diff := cmp.Diff(want, c.Providers(requirement.API{Group: "g", Version: "v1", Kind: "A"})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := c.Providers(requirement.API{Version: "v1", Kind: "A"}); len(got) != 0 {
		t.Errorf("got %v for an API that no bundle provides", got)
	}
}
