package hook

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestObstacleIn(t *testing.T) {
	t.Parallel()
	ofRun := metav1.ObjectMeta{Annotations: map[string]string{AnnotationRun: "earlier"}}
	leaving := metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}
	for name, tc := range map[string]struct {
		live         metav1.ObjectMeta
		isContent    bool
		containsData bool
		policy       Policy
		want         Obstacle
	}{
		"F26: of an earlier run":                   {live: ofRun, policy: BeforeCreation},
		"F26: that no policy deletes":              {live: ofRun, policy: Failed, want: IsOfEarlierRun},
		"F26: content":                             {policy: BeforeCreation, isContent: true, want: IsContent},
		"F26: content that was a hook before":      {live: ofRun, policy: BeforeCreation, isContent: true, want: IsContent},
		"F26: of a revision that is not installed": {policy: BeforeCreation, want: IsContent},
		"F26: data of an earlier run":              {live: ofRun, policy: Failed, containsData: true},
		"F26: data that is content":                {live: ofRun, policy: BeforeCreation, isContent: true, containsData: true, want: IsContent},
		"F26: that is being deleted":               {live: leaving, policy: BeforeCreation, isContent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (Hook{Policies: []Policy{tc.policy}}).ObstacleIn(&tc.live, tc.isContent, tc.containsData); got != tc.want {
				t.Errorf("the obstacle is %q, want %q", got, tc.want)
			}
		})
	}
}
