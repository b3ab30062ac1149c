/* A library with the name of a TensorFlow Lite that shows no planner. */
int hidden_litert();

int hidden_litert() { return 0; }
