package catalogserver

import (
	"slices"
	"testing"
)

func TestSurplus(t *testing.T) {
	t.Parallel()
	content := func(catalog string, bytes, order int64) former {
		return former{contentKey: contentKey{catalog: catalog}, bytes: bytes, order: order}
	}
	tests := map[string]struct {
		contents []former
		room     int64
		want     []int64 // orders
	}{
		"nothing":                       {room: -1},
		"all have room":                 {contents: []former{content("a", 5, 1), content("b", 5, 2)}, room: 10},
		"the oldest of one":             {contents: []former{content("a", 5, 2), content("a", 5, 3), content("a", 5, 1)}, room: 11, want: []int64{1}},
		"no more than has to":           {contents: []former{content("a", 1, 1), content("a", 9, 2)}, room: 9, want: []int64{1}},
		"of who has most":               {contents: []former{content("a", 5, 1), content("b", 3, 2), content("b", 3, 3)}, room: 10, want: []int64{2}},
		"until another one has most":    {contents: []former{content("a", 5, 1), content("b", 3, 2), content("b", 3, 3)}, room: 5, want: []int64{2, 1}},
		"the oldest of who has as much": {contents: []former{content("b", 5, 2), content("a", 5, 1)}, room: 9, want: []int64{1}},
		"all":                           {contents: []former{content("a", 5, 1), content("b", 5, 2)}, room: -1, want: []int64{1, 2}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(tt.contents)
			var got []int64
			for _, f := range surplus(tt.contents, tt.room) {
				got = append(got, f.order)
			}
			if !slices.Equal(got, tt.want) || !slices.Equal(tt.contents, before) {
				t.Errorf("got %v of %v, want %v", got, tt.contents, tt.want)
			}
		})
	}
}
