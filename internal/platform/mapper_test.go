package platform_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// drop takes a group away.
func (s *server) drop(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.groups, group)
	s.answers["/apis/"+group+"/v1"] = func(context.Context) (any, error) { return nil, notFound() }
}

func thing(group string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: "Thing"} }

func TestTheMapperForgets(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"a definition": pathDefinitions, "an API service": pathAPIServices} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, newServer(), func(t *testing.T, w *world) {
				mapper := w.Mapper()
				if _, err := mapper.RESTMapping(thing("first.test"), "v1"); err != nil {
					t.Fatal(err)
				}
				pass(settled)
				w.drop("first.test")
				w.ring(path)
				pass(settled)
				if _, err := mapper.RESTMapping(thing("first.test"), "v1"); !meta.IsNoMatchError(err) {
					t.Errorf("err = %v for a kind that is gone", err)
				}
				w.serve("first.test", apidiscoveryv2.DiscoveryFreshnessCurrent)
				w.ring(path)
				pass(settled)
				if _, err := mapper.RESTMapping(thing("first.test"), "v1"); err != nil {
					t.Errorf("err = %v for a kind that is back", err)
				}
			})
		})
	}
}

// TestTheMapperForgetsLate has discovery follow a definition with a delay.
func TestTheMapperForgetsLate(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		mapper := w.Mapper()
		_, _ = mapper.RESTMapping(thing("first.test"), "v1")
		pass(settled)
		w.ring(pathDefinitions)
		pass(2 * time.Second)
		if _, err := mapper.RESTMapping(thing("first.test"), "v1"); err != nil {
			t.Fatal(err)
		}
		w.drop("first.test")
		pass(settled)
		if _, err := mapper.RESTMapping(thing("first.test"), "v1"); !meta.IsNoMatchError(err) {
			t.Errorf("err = %v for a kind that is gone", err)
		}
	})
}

func TestTheMapperAsksNothingAnewInAnUnchangedWorld(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		mapper := w.Mapper()
		pass(settled)
		if len(w.watchers) > 0 {
			t.Error("there are watches before anybody has asked")
		}
		_, _ = mapper.RESTMapping(thing("first.test"), "v1")
		pass(settled)
		_, _ = mapper.RESTMapping(thing("first.test"), "v1")
		w.take()
		for range 1000 {
			if _, err := mapper.RESTMapping(thing("first.test"), "v1"); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
		}
		w.ring(pathDefinitions)
		pass(settled)
		if diff := cmp.Diff([]string(nil), w.take()); diff != "" {
			t.Errorf("requests that nobody asked for (-want +got):\n%s", diff)
		}
	})
}

func TestAPIsAreReadThoughAMapperCameFirst(t *testing.T) {
	t.Parallel()
	in(t, newServer(), func(t *testing.T, w *world) {
		_, _ = w.Mapper().RESTMapping(thing("first.test"), "v1")
		pass(settled)
		_, _ = w.APIs()
		pass(time.Second)
		if !w.serves(t, "first.test") {
			t.Error("it does not know what is served after it was asked")
		}
		w.serve("second.test", current)
		w.ring(pathDefinitions)
		pass(settled)
		if !w.serves(t, "second.test") {
			t.Error("the new group is not served")
		}
	})
}
