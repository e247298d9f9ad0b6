package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

const propertiesAnnotation = "olm.properties"

type property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// readProperties appends metadata/properties.yaml to the properties that the
// ClusterServiceVersion has in its annotation, from where they reach the pod
// templates and the release. Without the file the annotation stays as
// authored, byte for byte. A plain bundle has neither.
func (p *parser) readProperties() error {
	if p.bundle.isPlain() {
		return nil
	}
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
	if err := p.mergeProperties(fromFile); err != nil {
		p.findings.add(p.bundle.csvFile(), "metadata.annotations["+propertiesAnnotation+"]", "%v", err)
	}
	return nil
}

func (p *parser) decodeProperties(content []byte) ([]property, error) {
	documents, err := p.decoder.decode(content)
	if err != nil || len(documents) == 0 {
		return nil, err
	}
	encoded, err := json.Marshal(documents[0])
	if err != nil {
		return nil, err
	}
	var file struct {
		Properties []property `json:"properties"`
	}
	if err := json.Unmarshal(encoded, &file); err != nil {
		return nil, err
	}
	return file.Properties, nil
}

// mergeProperties writes "null" for no properties at all, as installed
// releases have it: any other text would change their pod templates.
func (p *parser) mergeProperties(fromFile []property) error {
	csv := &p.bundle.CSV
	var merged []property
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
