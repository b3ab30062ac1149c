/* The document's lines for an interpreter of TensorFlow Lite's C interface. */
#include "../tflite/c_interface.h"

#include "tflite_custom_c_scope.inc"

void tflite_custom_c_snippet(TfLiteInterpreter *interpreter, TfLiteInterpreter *other);
void tflite_custom_c_snippet(TfLiteInterpreter *interpreter, TfLiteInterpreter *other) {
#include "tflite_custom_c_body.inc"
}
