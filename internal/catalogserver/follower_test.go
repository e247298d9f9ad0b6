package catalogserver_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// newFollower returns another replica for the API server of leader.
func newFollower(leader *cluster) *cluster {
	leader.t.Helper()
	f := &cluster{
		t: leader.t, client: leader.client, dir: leader.t.TempDir(), now: leader.now.Add(time.Hour), random: 0.5,
		// What a tag stands for is none of its business.
		puller: &fakePuller{digest: 99, files: leader.puller.files},
	}
	f.restartAsFollower()
	return f
}

// mustFollow runs a pass of a follower of leader, which must not write anything.
func (c *cluster) mustFollow(leader *cluster) {
	c.t.Helper()
	leader.writes = nil
	if result, err := c.pass(); err != nil || result.RequeueAfter != 0 {
		c.t.Fatalf("got %+v, %v", result, err)
	}
	if len(leader.writes) != 0 {
		c.t.Errorf("the follower writes %q", leader.writes)
	}
}

func TestFollowerServesWhatTheLeaderServes(t *testing.T) {
	t.Parallel()
	leader := newCluster(t, newCatalog(tagRef, 10))
	follower := newFollower(leader)
	follower.mustFollow(leader)
	if follower.puller.pulls != 0 {
		t.Error("the follower decides what is served")
	}
	leader.mustSettle()
	for range 2 {
		follower.mustFollow(leader)
	}
	if follower.puller.pulls != 1 || follower.puller.resolves != 0 || follower.puller.closed != 1 {
		t.Errorf("%d pulls, %d resolves, %d closed", follower.puller.pulls, follower.puller.resolves, follower.puller.closed)
	}
	want, _ := leader.store.Record("c")
	got, _ := follower.store.Record("c")
	got.Folder = want.Folder
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the replicas hold different content: -leader +follower\n%s", diff)
	}

	leader.puller.digest = 2
	leader.now = leader.now.Add(10 * time.Minute)
	leader.mustSettle()
	follower.mustFollow(leader)
	if got, _ := follower.store.Record("c"); got.Canonical != digestRef(2) {
		t.Errorf("the follower holds %s", got.Canonical)
	}
}

func TestFollowerDropsWhatIsGone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *cluster){
		"deleted": func(t *testing.T, c *cluster) {
			if err := c.client.Delete(t.Context(), c.catalog()); err != nil {
				t.Fatal(err)
			}
			c.mustSettle()
		},
		"being deleted": func(t *testing.T, c *cluster) {
			if err := c.client.Delete(t.Context(), c.catalog()); err != nil {
				t.Fatal(err)
			}
		},
		"unavailable": func(_ *testing.T, c *cluster) {
			c.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.AvailabilityMode = ocv1.AvailabilityModeUnavailable })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leader := newCluster(t, newCatalog(tagRef, 0))
			leader.mustSettle()
			follower := newFollower(leader)
			follower.mustFollow(leader)
			if got := read(t, follower.store, "c"); got != objectP {
				t.Fatalf("serves %q", got)
			}
			change(t, leader)
			follower.mustFollow(leader)
			if got := tree(t, follower.dir); len(got) != 0 {
				t.Errorf("left files %v", got)
			}
		})
	}
}

func TestFollowerKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	leader := newCluster(t, newCatalog(tagRef, 10))
	leader.mustSettle()
	follower := newFollower(leader)
	follower.mustFollow(leader)
	first, _ := follower.store.Record("c")

	follower.restartAsFollower()
	follower.mustFollow(leader)

	// The leader lost its content and cannot get it: this may be the last copy.
	leader.dir = t.TempDir()
	leader.puller.err = errors.New("no registry")
	leader.restart()
	leader.mustSettle()
	follower.mustFollow(leader)

	// A successor that cannot be pulled replaces nothing.
	leader.puller.err, leader.puller.digest = nil, 2
	leader.mustSettle()
	leader.now = leader.now.Add(time.Hour)
	leader.mustSettle()
	follower.puller.err = errors.New("no registry")
	for _, want := range []time.Duration{time.Second, 2 * time.Second} {
		if result, err := follower.pass(); err != nil || result.RequeueAfter != want {
			t.Errorf("got %+v, %v, want another try in %v", result, err, want)
		}
	}
	got, _ := follower.store.Record("c")
	if diff := cmp.Diff(first, got); diff != "" || read(t, follower.store, "c") != objectP {
		t.Errorf("holds other content: -want +got\n%s", diff)
	}
}

// Leadership moves without a write or a request to a registry, and polling goes
// on from when the content was stored.
func TestFollowerTakesOver(t *testing.T) {
	t.Parallel()
	leader := newCluster(t, newCatalog(tagRef, 10))
	leader.mustSettle()
	follower := newFollower(leader)
	follower.now = leader.now.Add(time.Minute)
	follower.mustFollow(leader)
	before := leader.catalog().ResourceVersion

	follower.lead()
	result, err := follower.pass()
	if want := 9*time.Minute + 3*time.Second; err != nil || result.RequeueAfter != want {
		t.Errorf("got %+v, %v, want to poll in %v", result, err, want)
	}
	if got := leader.catalog().ResourceVersion; got != before || follower.puller.resolves != 0 || follower.puller.pulls != 1 {
		t.Errorf("wrote %v, %d resolves, %d pulls", got != before, follower.puller.resolves, follower.puller.pulls)
	}

	// From here on it decides.
	follower.now = follower.now.Add(time.Hour)
	follower.mustSettleWith(leader)
	if got := follower.catalog().Status.ResolvedSource.Image.Ref; got != digestRef(99) {
		t.Errorf("serves %s", got)
	}
}

// mustSettleWith runs passes of a replica that took over until it does not write.
func (c *cluster) mustSettleWith(former *cluster) {
	c.t.Helper()
	for range 5 {
		former.writes = nil
		if _, err := c.pass(); err != nil {
			c.t.Fatal(err)
		}
		if len(former.writes) == 0 {
			return
		}
	}
	c.t.Fatal("every pass writes")
}

// The tag of content counts as looked up only if the leader did so for the spec
// as it is.
func TestFollowerTakesOverWhileTheSpecIsNew(t *testing.T) {
	t.Parallel()
	leader := newCluster(t, newCatalog(tagRef, 0))
	leader.mustSettle()
	leader.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.Source.Image.Ref = "registry.test/catalog:next" })
	follower := newFollower(leader)
	follower.mustFollow(leader)
	follower.lead()
	follower.mustSettleWith(leader)
	if got := follower.catalog().Status.ResolvedSource.Image.Ref; got != digestRef(99) || follower.puller.resolves != 1 {
		t.Errorf("serves %s after %d resolves", got, follower.puller.resolves)
	}
}

// Another tag of the same content is noted, and nothing is pulled for it.
func TestFollowerNotesTheSource(t *testing.T) {
	t.Parallel()
	leader := newCluster(t, newCatalog(tagRef, 0))
	leader.mustSettle()
	follower := newFollower(leader)
	follower.mustFollow(leader)
	leader.update(func(catalog *ocv1.ClusterCatalog) { catalog.Spec.Source.Image.Ref = "registry.test/catalog:next" })
	follower.mustFollow(leader)
	if got, _ := follower.store.Record("c"); got.Source != tagRef {
		t.Errorf("got source %s before the leader has looked", got.Source)
	}
	leader.mustSettle()
	follower.mustFollow(leader)
	if got, _ := follower.store.Record("c"); got.Source != "registry.test/catalog:next" || follower.puller.pulls != 1 {
		t.Errorf("got source %s and %d pulls", got.Source, follower.puller.pulls)
	}
}

// What was not written by us may name anything.
func TestFollowerPullsByDigestOnly(t *testing.T) {
	t.Parallel()
	unpacked := metav1.Now()
	for name, status := range map[string]ocv1.ClusterCatalogStatus{
		"tag": {
			LastUnpacked:   &unpacked,
			ResolvedSource: &ocv1.ResolvedCatalogSource{Type: ocv1.SourceTypeImage, Image: &ocv1.ResolvedImageSource{Ref: tagRef}},
		},
		"no image": {LastUnpacked: &unpacked, ResolvedSource: &ocv1.ResolvedCatalogSource{Type: ocv1.SourceTypeImage}},
		"no time": {
			ResolvedSource: &ocv1.ResolvedCatalogSource{Type: ocv1.SourceTypeImage, Image: &ocv1.ResolvedImageSource{Ref: digestRef(1)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catalog := newCatalog(tagRef, 0)
			catalog.Status = status
			leader := newCluster(t, catalog)
			follower := newFollower(leader)
			follower.mustFollow(leader)
			if follower.puller.pulls != 0 || follower.puller.resolves != 0 {
				t.Errorf("%d pulls, %d resolves", follower.puller.pulls, follower.puller.resolves)
			}
		})
	}
}
