/* What a kernel team has on the first day: a function per operator, float32, contiguous. */
#include <math.h>
#include <stdint.h>

void log_sigmoid_backward(const float *gradient, const float *x, float *result, int64_t size)
{
    for (int64_t i = 0; i < size; i++) {
        float z = expf(-fabsf(x[i]));
        result[i] = gradient[i] * (x[i] < 0 ? 1 : z) / (1 + z);
    }
}

void softmax_backward(const float *gradient, const float *y, float *result, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++, gradient += columns, y += columns, result += columns) {
        float sum = 0;
        for (int64_t k = 0; k < columns; k++) sum += gradient[k] * y[k];
        for (int64_t k = 0; k < columns; k++) result[k] = (gradient[k] - sum) * y[k];
    }
}
