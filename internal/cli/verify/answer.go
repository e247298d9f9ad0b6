package verify

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// schemaVersion changes when what programs read of an answer does.
const schemaVersion = 1

// answer is what is printed.
type answer struct {
	SchemaVersion int      `json:"schemaVersion"`
	Images        []judged `json:"images"`

	// Unknown is what could not be found out, a line each.
	Unknown []string `json:"unknown,omitempty"`
}

// judged is an image with what the policies make of it.
type judged struct {
	Ref string `json:"ref"`

	// What it is of the object: several if they are the same image.
	What []string `json:"what,omitempty"`

	// Image is the image by its digest, which is what was judged, and Instance the digest of the
	// one in it for this machine if that is an index.
	Image    string `json:"image,omitempty"`
	Instance string `json:"instance,omitempty"`

	// Outcome is accepted, warned or refused; empty if there is an Error.
	Outcome imagepolicy.Outcome `json:"outcome,omitempty"`

	// SignaturePolicy says why policy.json refuses the image; absent if it does not.
	SignaturePolicy string `json:"signaturePolicy,omitempty"`

	*imagepolicy.Explanation

	// Error says why it is not known.
	Error string `json:"error,omitempty"`
}

// add adds an image. It is the one before if both are the same.
func (a *answer) add(one wanted, explained image.Explanation, err error) {
	row := judged{Ref: one.Ref, Image: explained.Image, Instance: explained.Instance.String()}
	if one.what != "" {
		row.What = []string{one.what}
	}
	if err != nil {
		row.Error = err.Error()
	} else {
		row.Outcome, row.SignaturePolicy, row.Explanation = explained.Outcome(), explained.Refusal, &explained.Explanation
	}
	same := slices.IndexFunc(a.Images, func(other judged) bool { return other.Error == "" && err == nil && other.Image == row.Image })
	if same >= 0 {
		a.Images[same].What = append(a.Images[same].What, row.What...)
		return
	}
	a.Images = append(a.Images, row)
}

// print prints the answer. It returns an error too if an image is refused, or if that is not known.
func (a *answer) print(command *cobra.Command, format *cli.Choice) error {
	write := a.printText
	if format.String() != cli.Text {
		write = func(to io.Writer) error { return cli.Print(to, format, a) }
	}
	if err := write(command.OutOrStdout()); err != nil {
		return err
	}
	refused, unknown := 0, len(a.Unknown)
	for _, one := range a.Images {
		if one.Outcome == imagepolicy.Refused {
			refused++
		}
		if one.Error != "" {
			unknown++
		}
	}
	switch {
	case refused > 0:
		return errors.New(cli.Counted(refused, "image") + " refused")
	case unknown > 0:
		return errors.New("not all is known")
	case len(a.Images) == 0:
		return errors.New("there is no image to judge")
	}
	return nil
}

func (a *answer) printText(to io.Writer) error {
	var lines []string
	for i, one := range a.Images {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, one.lines()...)
	}
	for _, text := range a.Unknown {
		lines = append(lines, "not known: "+text)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(to, cli.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}

func (j judged) lines() []string {
	var lines []string
	label := func(name, text string) {
		if text != "" {
			lines = append(lines, fmt.Sprintf("%-13s %s", name, text))
		}
	}
	label("Image:", j.Ref)
	label("What:", strings.Join(j.What, ", "))
	_, digest, _ := strings.Cut(j.Image, "@")
	label("Digest:", digest)
	if j.Instance != "" {
		label("", j.Instance+" in it")
	}
	if j.Error != "" {
		label("Verdict:", "not known: "+j.Error)
		return lines
	}
	for _, policy := range j.Policies {
		label("Policy:", fmt.Sprintf("%s, %s, by %s", policy.Name, policy.Mode, prefixText(j.Prefix)))
		for _, finding := range policy.Signatures {
			label("  Signature:", text(finding))
		}
		for _, demanded := range policy.Attestations {
			for _, finding := range demanded.Findings {
				label("  Attested:", demanded.PredicateType+": "+text(finding))
			}
		}
	}
	if len(j.Policies) == 0 {
		label("Policy:", "none is about it")
	}
	for i, found := range j.Found {
		name := ""
		if i == 0 {
			name = "Found:"
		}
		what := cmp.Or(found.PredicateType, "signature")
		if found.Problem != "" {
			what = "unreadable, " + found.Problem
		}
		label(name, found.Place+": "+what)
	}
	label("Verdict:", j.verdict())
	return lines
}

// verdict is the outcome with what speaks against the image.
func (j judged) verdict() string {
	reasons := j.Verdict.Refusals
	if j.SignaturePolicy != "" {
		reasons = append([]string{j.SignaturePolicy}, reasons...)
	}
	if len(reasons) == 0 {
		return string(j.Outcome)
	}
	return string(j.Outcome) + ": " + strings.Join(reasons, "; ")
}

func prefixText(prefix string) string {
	if prefix == "" {
		return "the prefix of all images"
	}
	return fmt.Sprintf("the prefix %q", prefix)
}

func text(found imagepolicy.Finding) string {
	if found.Reason != "" {
		return fmt.Sprintf("authority %q: no: %s", found.Authority, found.Reason)
	}
	return fmt.Sprintf("authority %q: signed by %s", found.Authority, found.Signer)
}
