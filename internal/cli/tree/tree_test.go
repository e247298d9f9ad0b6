package tree

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/overview"
)

func TestTreesForPeople(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	err := printTree(&text, overview.Tree{
		Extension: overview.Row{Name: "x", Health: overview.NotReady, Message: "it does not serve"},
		Objects: []overview.Object{
			{Kind: "ClusterRole", Name: "r", Health: overview.Present},
			{Kind: "Deployment", Namespace: "ns", Name: "d", Health: overview.NotReady, Message: "0 of 1 replicas are available"},
			{Kind: "Service", Namespace: "ns", Name: "s", Health: overview.Missing},
		},
		More:    2,
		Unknown: []string{"who knows"},
	})
	const want = `ClusterExtension x (nothing installed)   NotReady   it does not serve
in no namespace
└─ ClusterRole r                         Present
namespace ns
├─ Deployment d                          NotReady   0 of 1 replicas are available
└─ Service s                             Missing
and 2 more
not known: who knows
`
	if diff := cmp.Diff(want, text.String()); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
