/* Float kernels, plain loops over NHWC data. They write every byte of their output and read only their inputs. */
#ifndef MOBILENET_KERNELS_H
#define MOBILENET_KERNELS_H

#include "model.h"

/* Runs one node on tensors whose `data` is set. */
void run_node(const model_t *m, int node, const AreniteTensor *tensors);

#endif
