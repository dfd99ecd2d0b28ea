package monitoring

import "encoding/json"

// Files are those of deploy/monitoring that are made here, by their names in it.
func Files() (map[string][]byte, error) {
	rules, err := Rules()
	if err != nil {
		return nil, err
	}
	resource, err := Resource()
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{"rules.yaml": rules, "prometheusrule.yaml": resource}
	for name, d := range Dashboards() {
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return nil, err
		}
		all["dashboards/"+name+".json"] = append(text, '\n')
	}
	return all, nil
}
