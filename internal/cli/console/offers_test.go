package console

import (
	"fmt"
	"testing"
)

// The packages that were asked for last are kept, and no others.
func TestFewOffersAreKept(t *testing.T) {
	t.Parallel()
	o := newOffered()
	key := func(i int) offerKey { return offerKey{catalog: "c", digest: "d", name: fmt.Sprint(i)} }
	for i := range maxOffers {
		o.keep(offer{key: key(i)})
	}
	if o.last(key(0)) == nil {
		t.Error("the first one is not kept")
	}
	o.keep(offer{key: key(maxOffers)})
	if o.last(key(0)) == nil || o.last(key(1)) != nil || len(o.kept) != maxOffers {
		t.Errorf("%d are kept", len(o.kept))
	}
	if o.last(offerKey{catalog: "c", digest: "e", name: "0"}) != nil {
		t.Error("what a catalog had before is given")
	}
}
