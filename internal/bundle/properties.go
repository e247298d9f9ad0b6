package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

const propertiesAnnotation = "olm.properties"

// Property is a typed fact that the files of a bundle state, with its value as JSON.
type Property = property

type property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// readProperties appends metadata/properties.yaml to the properties that the
// ClusterServiceVersion has in its annotation, from where they reach the pod
// templates and the release. Without the file the annotation stays as
// authored, byte for byte.
func (p *parser) readProperties() error {
	if _, err := fs.Lstat(p.reader.files, propertiesFile); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	content, err := p.content(propertiesFile)
	if err != nil || len(content) == 0 {
		return err
	}
	fromFile, err := p.decodeProperties(content)
	if err != nil {
		p.findings.add(propertiesFile, "", "%v", err)
		return nil
	}
	p.bundle.Properties = fromFile
	if err := p.mergeProperties(fromFile); err != nil {
		p.findings.add(p.bundle.csvFile(), "metadata.annotations["+propertiesAnnotation+"]", "%v", err)
	}
	return nil
}

func (p *parser) decodeProperties(content []byte) ([]Property, error) {
	var file struct {
		Properties []Property `json:"properties"`
	}
	err := p.decodeFirst(content, &file)
	return file.Properties, err
}

// decodeFirst decodes the first document of a file, if it has one.
func (p *parser) decodeFirst(content []byte, into any) error {
	documents, err := p.decoder.decode(content)
	if err != nil || len(documents) == 0 {
		return err
	}
	encoded, err := json.Marshal(documents[0])
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, into)
}

// mergeProperties writes "null" for no properties at all, as installed
// releases have it: any other text would change their pod templates.
func (p *parser) mergeProperties(fromFile []Property) error {
	csv := &p.bundle.CSV
	var merged []Property
	if authored, ok := csv.Annotations[propertiesAnnotation]; ok {
		if err := json.Unmarshal([]byte(authored), &merged); err != nil {
			return fmt.Errorf("not a list of properties: %w", err)
		}
	}
	encoded, err := json.Marshal(append(merged, fromFile...))
	if err != nil {
		return err
	}
	if csv.Annotations == nil {
		csv.Annotations = map[string]string{}
	}
	csv.Annotations[propertiesAnnotation] = string(encoded)
	return nil
}
