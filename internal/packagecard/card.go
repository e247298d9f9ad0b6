package packagecard

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Details are what there is to show of one package. Its texts are those of the newest
// bundle, and any may be empty.
type Details struct {
	Package string
	// DisplayName is the name for people.
	DisplayName string
	Provider    string
	// Summary is the short description in one line.
	Summary string
	// DefaultChannel is the channel that the catalog recommends.
	DefaultChannel string
	// Newest is the highest version of each channel.
	Newest map[string]string
	// Description is Markdown.
	Description string
	// InstallModes are those that are supported.
	InstallModes []string
	// Maturity is what the authors say of it, such as alpha.
	Maturity    string
	Links       []Link
	Maintainers []string
	// Definitions are the kinds that come with it.
	Definitions []string
	// Images is how many images other than its own the newest bundle names.
	Images int
}

// Link is a page of the authors. Its URL may be anything.
type Link struct{ Name, URL string }

// packageObject is an olm.package.
type packageObject struct {
	DefaultChannel string `json:"defaultChannel"`
	Description    string `json:"description"`
}

// iconObject is an olm.package, of which only the icon is wanted.
type iconObject struct {
	Icon struct {
		Data      string `json:"base64data"`
		MediaType string `json:"mediatype"`
	} `json:"icon"`
}

// channelObject is an olm.channel.
type channelObject struct {
	Entries []struct {
		Name string `json:"name"`
	} `json:"entries"`
}

// bundleObject is an olm.bundle. Only those values are decoded that are needed.
type bundleObject struct {
	Image         string     `json:"image"`
	Properties    []property `json:"properties"`
	RelatedImages []struct {
		Image string `json:"image"`
	} `json:"relatedImages"`
}

type property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// csvMetadata is the value of an olm.csv.metadata.
type csvMetadata struct {
	Annotations map[string]string `json:"annotations"`
	DisplayName string            `json:"displayName"`
	Description string            `json:"description"`
	Maturity    string            `json:"maturity"`
	Provider    struct {
		Name string `json:"name"`
	} `json:"provider"`
	InstallModes []struct {
		Type      string `json:"type"`
		Supported bool   `json:"supported"`
	} `json:"installModes"`
	Links []struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	} `json:"links"`
	Maintainers []struct {
		Name string `json:"name"`
	} `json:"maintainers"`
	Definitions struct {
		Owned []struct {
			Kind    string `json:"kind"`
			Version string `json:"version"`
		} `json:"owned"`
	} `json:"crdDescriptions"`
}

// describe takes what the authors of a bundle say of it.
func (d *Details) describe(said csvMetadata) {
	d.DisplayName, d.Provider = title(said.DisplayName), title(said.Provider.Name)
	if short := said.Annotations["description"]; short != "" {
		d.Summary = excerpt.Line(short, maxSummaryBytes)
	}
	d.Maturity = title(said.Maturity)
	d.Description = cmp.Or(cut(said.Description), d.Description)
	d.InstallModes, d.Links = nil, nil
	for _, mode := range said.InstallModes[:min(len(said.InstallModes), maxItems)] {
		if mode.Supported {
			d.InstallModes = append(d.InstallModes, title(mode.Type))
		}
	}
	for _, link := range said.Links[:min(len(said.Links), maxItems)] {
		d.Links = append(d.Links, Link{Name: title(link.Name), URL: excerpt.Line(link.URL, maxSummaryBytes)})
	}
	d.Maintainers = texts(said.Maintainers, func(one struct {
		Name string `json:"name"`
	},
	) string {
		return one.Name
	})
	d.Definitions = texts(said.Definitions.Owned, func(one struct {
		Kind    string `json:"kind"`
		Version string `json:"version"`
	},
	) string {
		return one.Kind + " " + one.Version
	})
}

func texts[T any](items []T, text func(T) string) []string {
	var found []string
	for _, item := range items[:min(len(items), maxItems)] {
		if line := title(text(item)); line != "" {
			found = append(found, line)
		}
	}
	return found
}

func title(text string) string { return excerpt.Line(text, maxTitleBytes) }

// cut bounds a text, and keeps its lines.
func cut(text string) string {
	if len(text) <= maxDescriptionBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxDescriptionBytes], "") + "…"
}

// summaryOf is the beginning of a description: its first line that is no heading.
func summaryOf(description string) string {
	for line := range strings.Lines(description[:min(len(description), maxDescriptionBytes)]) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "<") && !strings.HasPrefix(line, "![") {
			return excerpt.Line(strings.NewReplacer("**", "", "`", "", "__", "").Replace(line), maxSummaryBytes)
		}
	}
	return ""
}

// decode leaves what it cannot read as it was: a card with less on it is better than none.
func decode(o fbc.Object, to any) { _ = json.Unmarshal(o.JSON, to) }
