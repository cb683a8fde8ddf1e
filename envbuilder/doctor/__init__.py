"""What a machine has: doctor's report, its snapshot, and the site that it is as a document."""
