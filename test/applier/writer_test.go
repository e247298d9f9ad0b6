package applier_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestObjectsThatKeepChanging changes an object before every request to delete it: it
// is read again three times, and left to the next try.
func TestObjectsThatKeepChanging(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "restless")
	f.apply(t, "1.0.0", configMap("a", "1"), configMap("restless", "1"))
	var tries atomic.Int32
	f.requests.setStop(func(req *http.Request) error {
		if req.Method != http.MethodDelete || isTrial(req) || !strings.HasSuffix(req.URL.Path, "/configmaps/restless") {
			return nil
		}
		live := f.live(t, "restless")
		live.Annotations["theirs"] = strconv.Itoa(int(tries.Add(1)))
		return admin.Update(t.Context(), live)
	})
	_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", configMap("a", "1")))
	f.requests.setStop(nil)
	if !apierrors.IsConflict(err) || tries.Load() != 1+3 {
		t.Errorf("after %d requests: %v", tries.Load(), err)
	}
	if f.live(t, "restless") == nil {
		t.Fatal("an object that was changed is deleted")
	}
	f.apply(t, "1.1.0", configMap("a", "1"))
	if f.live(t, "restless") != nil {
		t.Error("the object is still there")
	}
}
