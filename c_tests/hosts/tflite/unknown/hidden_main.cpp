/* Uses it. */
int hidden_litert();

int main() { return hidden_litert(); }
