package controller

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// tellingPlatform is a cluster that changes.
type tellingPlatform struct {
	Platform

	kubernetes string
	serves     map[requirement.API]bool // nil while that is not known
}

func (p *tellingPlatform) Kubernetes() string { return p.kubernetes }

func (*tellingPlatform) OpenShift() string { return "" }

func (p *tellingPlatform) APIs() (func(group, version, kind string) bool, error) {
	if p.serves == nil {
		return nil, errUnknownAPIs
	}
	now := p.serves
	return func(group, version, kind string) bool {
		return now[requirement.API{Group: group, Version: version, Kind: kind}]
	}, nil
}

// TestAnswersHold until one of those that were given is another one.
func TestAnswersHold(t *testing.T) {
	t.Parallel()
	asked, other := requirement.API{Group: "g", Version: "v1", Kind: "Asked"}, requirement.API{Group: "g", Version: "v1", Kind: "Other"}
	served := func(apis ...requirement.API) map[requirement.API]bool {
		all := map[requirement.API]bool{}
		for _, api := range apis {
			all[api] = true
		}
		return all
	}
	for name, test := range map[string]struct {
		before, after map[requirement.API]bool
		asks          bool
		kubernetes    string // after that
		hold          bool
	}{
		"nothing was asked, and much is served now": {before: served(), after: served(asked, other), hold: true},
		"nothing was asked, and nothing is known":   {hold: true},
		"another API is served":                     {before: served(), after: served(other), asks: true, hold: true},
		"another one is not served any more":        {before: served(asked, other), after: served(asked), asks: true, hold: true},
		"what was asked for is served":              {before: served(other), after: served(asked, other), asks: true},
		"what was asked for is not served any more": {before: served(asked), after: served(), asks: true},
		"it was not known, and is":                  {after: served(), asks: true},
		"it is still not known":                     {asks: true, hold: true},
		"another version of Kubernetes":             {before: served(), after: served(), kubernetes: "1.37.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			platform := &tellingPlatform{kubernetes: "1.36.0", serves: test.before}
			given := newAnswers(platform)
			if test.asks {
				if serves, err := given.asking(platform); err == nil && serves(asked) != test.before[asked] {
					t.Errorf("it is told %t", !test.before[asked])
				}
			}
			if !given.stillTrue(platform) {
				t.Error("they do not hold as long as nothing happens")
			}
			platform.serves = test.after
			if test.kubernetes != "" {
				platform.kubernetes = test.kubernetes
			}
			if given.stillTrue(platform) != test.hold {
				t.Errorf("they hold = %t", !test.hold)
			}
		})
	}
}

// TestAnswersThatAreGivenLate: what is asked for after others came to be served is answered
// as of then.
func TestAnswersThatAreGivenLate(t *testing.T) {
	t.Parallel()
	api := requirement.API{Group: "g", Version: "v1", Kind: "Asked"}
	platform := &tellingPlatform{kubernetes: "1.36.0", serves: map[requirement.API]bool{}}
	given := newAnswers(platform)
	serves, err := given.asking(platform)
	if err != nil {
		t.Fatal(err)
	}
	platform.serves = map[requirement.API]bool{api: true}
	if !given.stillTrue(platform) || !serves(api) || !given.stillTrue(platform) {
		t.Error("an answer is given that holds no more")
	}
}
