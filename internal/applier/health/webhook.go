package health

import (
	"fmt"
	"regexp"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// webhookFailure matches what the API server reports if it could not call an admission webhook: the name of the
// webhook, and the cause.
var webhookFailure = regexp.MustCompile(`failed calling webhook "([^"]+)": (?:failed to call webhook: )?(?:Post "[^"]*": )?(.*)`)

// maxWebhookCause bounds the cause in a text, in bytes.
const maxWebhookCause = 80

// ofPodCreation returns why no pods can be created. A webhook that does not answer may be served by these very pods,
// which is a deadlock: the text names the way out.
func ofPodCreation(message string) string {
	found := webhookFailure.FindStringSubmatch(message)
	if found == nil {
		return message
	}
	return fmt.Sprintf("no pod can be created because webhook %s does not answer: %s. If these pods serve it, set spec.suspend, delete its "+
		"webhook configuration, and remove spec.suspend when a pod is ready", excerpt.Quote(found[1]), excerpt.Line(excerpt.Scrub(found[2]), maxWebhookCause))
}
