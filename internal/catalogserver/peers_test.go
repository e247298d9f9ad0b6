package catalogserver_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// fakePeers have the content of one image; none if it is empty.
type fakePeers struct {
	canonical string
	files     fs.FS
	pulls     int
}

func (p *fakePeers) Pull(_ context.Context, _, canonical string) (*catalogserver.PulledCatalog, error) {
	p.pulls++
	if p.canonical != canonical {
		return nil, errors.New("no replica has it")
	}
	return &catalogserver.PulledCatalog{Canonical: canonical, Files: p.files, IsCurrent: func() bool { return true }, Close: func() {}}, nil
}

// newColdLeader returns a replica that takes over from leader and has nothing.
func newColdLeader(leader *cluster) *cluster {
	leader.t.Helper()
	cold := newFollower(leader)
	cold.now = leader.now.Add(time.Minute)
	cold.lead()
	return cold
}

// conditions are the statuses and reasons of a catalog.
func (c *cluster) conditions() map[string]string {
	c.t.Helper()
	found := map[string]string{}
	for _, condition := range c.catalog().Status.Conditions {
		found[condition.Type] = string(condition.Status) + " " + condition.Reason
	}
	return found
}

// A leader without content, and without a way to it, withdraws nothing: others may serve
// it. It says that it tries, often, and after a while that somebody has to look.
func TestColdLeaderKeepsWhatIsServed(t *testing.T) {
	t.Parallel()
	for name, ref := range map[string]string{"tag": tagRef, "digest": digestRef(1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leader := newCluster(t, newCatalog(ref, 0))
			leader.mustSettle()
			before := leader.catalog().Status
			cold := newColdLeader(leader)
			cold.puller.err = errors.New("no registry")
			want := map[string]string{ocv1.TypeServing: "True Available", ocv1.TypeProgressing: "True Retrying", ocv1.TypeReady: "True Retrying"}
			began := cold.now
			for cold.now.Sub(began) < 10*time.Minute {
				result, err := cold.pass()
				if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > time.Minute {
					t.Fatalf("got %+v, %v, want another try within a minute", result, err)
				}
				if cold.now.Sub(began) >= 2*time.Minute {
					want[ocv1.TypeReady], want[ocv1.TypeStalled] = "False Retrying", "True Retrying"
				}
				if diff := cmp.Diff(want, cold.conditions()); diff != "" {
					t.Fatalf("conditions after %s (-want +got):\n%s", cold.now.Sub(began), diff)
				}
				cold.now = cold.now.Add(result.RequeueAfter)
			}
			after := cold.catalog().Status
			if diff := cmp.Diff([]any{before.URLs, before.ResolvedSource, before.LastUnpacked}, []any{after.URLs, after.ResolvedSource, after.LastUnpacked}); diff != "" {
				t.Errorf("what is served (-want +got):\n%s", diff)
			}
			cold.puller.err, cold.puller.digest = nil, 1
			cold.mustSettleWith(leader)
			if !meta.IsStatusConditionPresentAndEqual(cold.catalog().Status.Conditions, ocv1.TypeReady, metav1.ConditionTrue) || read(t, cold.store, "c") != objectP {
				t.Errorf("conditions are %v", cold.conditions())
			}
		})
	}
}

// What another replica has is taken from there, without a registry, a write or a word.
func TestColdReplicasAskOthersFirst(t *testing.T) {
	t.Parallel()
	for name, lead := range map[string]bool{"leader": true, "follower": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leader := newCluster(t, newCatalog(tagRef, 0))
			leader.mustSettle()
			before := leader.catalog().ResourceVersion
			cold := newFollower(leader)
			cold.puller.err = errors.New("no registry")
			cold.peers = fakePeers{canonical: digestRef(1), files: leader.puller.files}
			if lead {
				cold.lead()
			}
			leader.told = nil
			if result, err := cold.pass(); err != nil || result.RequeueAfter != 0 {
				t.Fatalf("got %+v, %v", result, err)
			}
			if cold.puller.pulls != 0 || cold.puller.resolves != 0 || cold.catalog().ResourceVersion != before || len(leader.told)+len(cold.told) != 0 {
				t.Errorf("%d pulls, %d resolves, events %q %q", cold.puller.pulls, cold.puller.resolves, leader.told, cold.told)
			}
			want, _ := leader.store.Record("c")
			got, _ := cold.store.Record("c")
			got.Folder = want.Folder
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the replicas hold different content: -leader +cold\n%s", diff)
			}
			if want := []string{"c"}; !slices.Equal(cold.stored, want) {
				t.Errorf("told of %q, want %q", cold.stored, want)
			}
		})
	}
}

// An image may be gone under its digest. Then what its tag stands for takes its place.
func TestColdLeaderGoesOnWithTheTag(t *testing.T) {
	t.Parallel()
	leader := newCluster(t, newCatalog(tagRef, 0))
	leader.mustSettle()
	cold := newColdLeader(leader)
	cold.puller.gone = digestRef(1)
	cold.mustSettleWith(leader)
	if got := cold.catalog().Status.ResolvedSource.Image.Ref; got != digestRef(99) || cold.conditions()[ocv1.TypeReady] != "True Succeeded" {
		t.Errorf("serves %s, conditions are %v", got, cold.conditions())
	}
}

// A registry that was away when the leader went must not make content of the spec one of
// something else.
func TestColdLeaderKnowsContentThatCouldNotBeRenewed(t *testing.T) {
	t.Parallel()
	leader := newCluster(t, newCatalog(tagRef, 10))
	leader.mustSettle()
	leader.now, leader.puller.err = leader.now.Add(time.Hour), errors.New("no registry")
	leader.mustSettle()
	before := leader.conditions()
	cold := newColdLeader(leader)
	cold.puller.err = leader.puller.err
	cold.peers = fakePeers{canonical: digestRef(1), files: leader.puller.files}
	cold.mustSettleWith(leader)
	if diff := cmp.Diff(before, cold.conditions()); diff != "" || before[ocv1.TypeReady] != "True Retrying" {
		t.Errorf("conditions (-before +after):\n%s", diff)
	}
}

func TestLacking(t *testing.T) {
	t.Parallel()
	leader := newCluster(t, newCatalog(tagRef, 0))
	follower := newFollower(leader)
	lacking := func() []string {
		names, err := follower.store.Lacking(t.Context(), leader.client)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if got := lacking(); len(got) != 0 {
		t.Errorf("lacks %q of what nobody serves", got)
	}
	leader.mustSettle()
	if got := lacking(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("lacks %q before it has followed", got)
	}
	follower.mustFollow(leader)
	if got := lacking(); len(got) != 0 {
		t.Errorf("lacks %q of what it has", got)
	}
	leader.puller.digest = 2
	leader.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.Source.Image.Ref = "registry.test/catalog:next" })
	leader.mustSettle()
	if got := lacking(); !slices.Equal(got, []string{"c"}) {
		t.Errorf("lacks %q when there is other content", got)
	}
	leader.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.AvailabilityMode = ocv1.AvailabilityModeUnavailable })
	if got := lacking(); len(got) != 0 {
		t.Errorf("lacks %q of what is withdrawn", got)
	}
}
