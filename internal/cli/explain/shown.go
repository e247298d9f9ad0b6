package explain

import "github.com/clusterextensions/operator-controller/internal/controller"

// Choice is one bundle of an explanation, and why it was chosen or left out.
type Choice struct{ Version, Bundle, Catalog, Reason, Detail string }

// Shown is an explanation as the command prints it, for those who show it otherwise: its
// lines, and a choice for each bundle, newest first.
func Shown(found controller.Explanation) (lines []string, choices []Choice) {
	answer := answerOf(found)
	for _, row := range answer.rows() {
		choices = append(choices, Choice{
			Version: row.Version, Bundle: row.Name, Catalog: row.Catalog, Reason: string(row.Reason), Detail: row.Detail,
		})
	}
	return answer.summary(), choices
}
