package assay

// A Turn is one question of a conversation and its answer.
type Turn struct {
	Question string `json:"question"` // as it was understood
	Answer   string `json:"answer"`

	// Asked is the user's wording, set if the question was understood as another one.
	Asked string `json:"asked,omitempty"`
}
