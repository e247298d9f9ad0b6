package catalogsummary

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// MaxBytes is the size of a summary as JSON, some 30 times that of the largest public
// catalog.
const MaxBytes = 8 << 20

const (
	maxText        = 128 // bytes of a display name or a provider
	maxDescription = 512 // bytes
	maxKeywords    = 32
	maxKeyword     = 64 // bytes
	// maxName bounds the name of a package or a bundle in bytes. No catalog has a longer one,
	// and one that is cut would name something else.
	maxName = 1024
)

// Package is what a summary has of one package. The fields are in the order of their names
// in JSON, as in all that a server of catalogs sends.
type Package struct {
	// Bundle is the head of the default channel, and Version its version; empty if the
	// catalog has none, or has no such bundle.
	Bundle string `json:"bundle,omitempty"`
	// Channel is the default channel.
	Channel string `json:"channel,omitempty"`
	// Deprecated says that the whole package is.
	Deprecated bool `json:"deprecated,omitempty"`
	// Description is the short one of that bundle, or else the beginning of that of the
	// package, in one line.
	Description string   `json:"description,omitempty"`
	DisplayName string   `json:"displayName,omitempty"`
	Keywords    []string `json:"keywords,omitempty"`
	Name        string   `json:"name"`
	Provider    string   `json:"provider,omitempty"`
	Version     string   `json:"version,omitempty"`
}

// Write writes one package per line.
func Write(to io.Writer, packages []Package) error {
	lines := json.NewEncoder(to)
	lines.SetEscapeHTML(false)
	for _, p := range packages {
		if err := lines.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

// Read reads what [Write] wrote, whoever sends it: what is longer than a [Builder] makes it is
// cut, or left out if it is a name.
func Read(from io.Reader) ([]Package, error) {
	content, err := io.ReadAll(io.LimitReader(from, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxBytes {
		return nil, fmt.Errorf("the summary of the catalog is larger than %d bytes", MaxBytes)
	}
	var packages []Package
	for lines := json.NewDecoder(bytes.NewReader(content)); ; {
		var p Package
		err := lines.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the summary of the catalog cannot be read: %w", err)
		}
		if len(p.Name) > maxName {
			continue
		}
		if len(p.Bundle) > maxName {
			p.Bundle = ""
		}
		p.cut()
		packages = append(packages, p)
	}
}

// cut makes texts as long as they may be.
func (p *Package) cut() {
	p.Channel = line(p.Channel, maxChannel)
	p.Version = line(p.Version, maxText)
	p.Description = line(p.Description, maxDescription)
	p.DisplayName = line(p.DisplayName, maxText)
	p.Provider = line(p.Provider, maxText)
	p.Keywords = p.Keywords[:min(len(p.Keywords), maxKeywords)]
	for i := range p.Keywords {
		p.Keywords[i] = line(p.Keywords[i], maxKeyword)
	}
}

// line looks at no more of a text than matters: descriptions have megabytes.
func line(text string, limit int) string {
	const perByte = 4 // spaces that are folded, for each byte that stays
	if len(text) > perByte*limit {
		text = strings.ToValidUTF8(text[:perByte*limit], "") + "…"
	}
	return excerpt.Line(text, limit)
}
