/*
 * Runs any ONNX model in ONNX Runtime with its own memory settings and on arenite, and prints what each needs.
 *
 *   run --library libonnxruntime.so MODEL [--dims 1,3,640,640]... [--axis NAME=N]... [--value INPUT=N]... [--runs 6]
 *       [--threads 1] [--together 1] [--race N] [--failing DIMS] [--keep-outputs] [--settle] [--optimized]
 *       [--mode default|nopattern|noarena|plain|pool|arenite|prepared]
 *
 * Without --mode each setting runs in a process of its own, outputs are compared byte for byte, and a table is printed.
 * Resident memory is the process's, inputs and code included; its first peak is that of loading and of the first run of each
 * shape, its later peak that of all other runs.
 *
 * --dims is the first input's shape; several take turns. Of other inputs unknown dimensions are 1, or as --axis says, and
 * integers are 1, or as --value says.
 * --together makes so many threads call Run at once. --keep-outputs releases outputs only after the frame has ended.
 * --race compares the processor time of the default setting and of arenite in one process, by turns, for so many rounds.
 * --failing: after each run there is one with these dimensions, with which the engine fails somewhere in the model.
 * --settle lets the engine alone give back what loading left in the C library's heap, as arenite does.
 * --optimized: all settings load a copy of the model that ONNX Runtime has optimized and written before. The setting `prepared`
 * chooses between the two itself, see prepared.hpp.
 * Exit status: 0 all outputs equal, 1 not, 77 no library.
 */
#include "measure.hpp"

namespace {

/* Runs this program with further arguments and returns what it prints; `status` as waitpid has it. */
std::string child(const std::vector<std::string> &arguments, int *status) {
    std::vector<char *> raw;
    for (const std::string &argument : arguments) {
        raw.push_back(const_cast<char *>(argument.c_str()));
    }
    raw.push_back(nullptr);
    int ends[2];
    if (pipe(ends) != 0) {
        std::perror("pipe");
        std::exit(1);
    }
    const pid_t process = fork();
    if (process == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        execv("/proc/self/exe", raw.data());
        _exit(127);
    }
    close(ends[1]);
    std::string printed;
    char part[4096];
    for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) {
        printed.append(part, std::size_t(got));
    }
    close(ends[0]);
    waitpid(process, status, 0);
    return printed;
}

struct Setting {
    const char *mode, *meaning;
};
const Setting ALL[] = {{"default", "arena and pattern"}, {"nopattern", "arena, no pattern"}, {"noarena", "pattern, no arena"},
                       {"plain", "neither"}, {"pool", "arenite, no frames"}, {"arenite", "arenite, recorded frames"},
                       {"prepared", "arenite, form chosen"}};

/* Every setting in a process of its own. */
int compare(const Settings &s, char **argv, int argc) {
    const Folder home;
    std::vector<std::string> arguments(argv, argv + argc);
    int status = 0, wrong = 0;
    if (s.optimized) {
        const std::string copy = home / "optimized.onnx";
        (void)child({argv[0], "--library", s.library, s.model, "--mode", "optimize", "--outputs", copy}, &status);
        std::replace(arguments.begin(), arguments.end(), s.model, copy);
    }
    std::printf("%s%s\n%-26s %8s %8s %11s %11s %9s %9s %9s  outputs\n", s.model.c_str(), s.optimized ? ", optimized copy" : "",
                "MiB resident; CPU ms", "of files", "loaded", "first peak", "later peak", "first run", "median", "least");
    for (const Setting &setting : ALL) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
            return 77;
        }
        const std::string outputs = home / setting.mode, expected = home / "default";
        std::vector<std::string> one = arguments;
        one.insert(one.end(), {"--mode", setting.mode, "--outputs", outputs});
        const std::string printed = child(one, &status);
        double loaded, files, first_peak, later_peak, first_ms, later_ms, least_ms;
        if (status != 0 || std::sscanf(printed.c_str(), "RESULT mode=%*s loaded=%lf files=%lf first_peak=%lf later_peak=%lf "
                                                        "first_ms=%lf later_ms=%lf least_ms=%lf", &loaded, &files, &first_peak,
                                       &later_peak, &first_ms, &later_ms, &least_ms) != 7) {
            std::printf("%-26s failed with status %d\n%s", setting.meaning, status, printed.c_str());
            wrong = 1;
            continue;
        }
        bool equal = s.together > 1 || same_files(outputs, expected);
        for (int t = 0; s.together > 1 && t < s.together; t++) {
            const std::string end = "." + std::to_string(t);
            equal = equal && same_files(outputs + end, expected + end);
        }
        std::printf("%-26s %8.1f %8.1f %11.1f %11.1f %9.1f %9.2f %9.2f  %s\n%s", setting.meaning, files, loaded, first_peak,
                    later_peak, first_ms, later_ms, least_ms, &setting == ALL ? "" : equal ? "equal" : "DIFFERENT",
                    printed.c_str() + printed.find('\n') + 1);
        std::fflush(stdout);
        wrong |= !equal || printed.find("WRONG") != std::string::npos;
    }
    return wrong;
}

} // namespace

int main(int argc, char **argv) {
    Settings s;
    if (!s.parse(argc, argv)) {
        Settings::usage(argv[0]);
        return 2;
    }
    return s.race > 0 ? race(s) : s.mode.empty() ? compare(s, argv, argc) : measure(s);
}
