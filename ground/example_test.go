package ground_test

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay/ground"
)

// Judge claims without a reader. Only words of the source are then supported.
func ExampleLocal_Verify() {
	cited := []ground.Passage{{Quote: "A hotel may cost up to 140 euros a night.", Context: "A hotel may cost up to 140 euros a night.", Heading: []string{"Travel"}}}
	for _, claim := range []string{"A hotel may cost up to 140 euros a night.", "A hotel may cost up to 180 euros a night."} {
		j, err := ground.Local{}.Verify(context.Background(), claim, cited)
		fmt.Println(j.Verdict, j.Reason, err)
	}
	// Output:
	// supported verbatim in the source <nil>
	// unsupported the number 180 euros is not in the source <nil>
}

func ExampleCut() {
	for _, c := range ground.Cut("Flights are booked early. Trains are booked in second class.", []int{2}) {
		fmt.Println(c.Text, c.Evidence)
	}
	// Output:
	// Flights are booked early. [2]
	// Trains are booked in second class. [2]
}
