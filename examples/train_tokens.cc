// Trains a bigram model on tokens from disk, stops in the middle of an epoch, and resumes from a
// checkpoint with exactly the same batches.
//
//   train_tokens            writes a small token file, trains on it, and removes it
//   train_tokens t.bin      trains on the uint16 tokens of a file, modulo 64
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lowtide/loader.h"

namespace {

constexpr std::size_t kVocabulary = 64;
constexpr float kRate = 0.5F;
constexpr int kSteps = 300, kCheckpoint = 170;

// The logits of the next token, one row per token.
struct Model {
  std::vector<float> logits = std::vector<float>(kVocabulary * kVocabulary, 0.0F);

  // Takes one step of gradient descent per pair; returns the mean loss before the steps.
  double train(const lowtide::Batch& batch) {
    const auto x = batch.as<std::int32_t>(lowtide::kX);
    const auto y = batch.as<std::int32_t>(lowtide::kY);
    double loss = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto from = static_cast<std::size_t>(x[i]) % kVocabulary;
      const auto to = static_cast<std::size_t>(y[i]) % kVocabulary;
      float* row = logits.data() + from * kVocabulary;
      std::array<float, kVocabulary> chance;
      float sum = 0;
      for (std::size_t k = 0; k < kVocabulary; ++k) sum += chance[k] = std::exp(row[k]);
      loss -= std::log(chance[to] / sum);
      for (std::size_t k = 0; k < kVocabulary; ++k) row[k] -= kRate * chance[k] / sum;
      row[to] += kRate;
    }
    return loss / static_cast<double>(x.size());
  }
};

// A temporary folder that is removed at the end.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "train_tokens_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create folder " + name);
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

// Writes tokens that mostly follow a rule, so that there is something to learn.
std::string write_tokens(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "train.bin";
  std::ofstream out(path, std::ios::binary);
  std::uint64_t random = 1;
  std::uint16_t token = 0;
  for (int i = 0; i < 200'000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const bool noise = random >> 61 == 0;
    token = static_cast<std::uint16_t>((noise ? random >> 40 : token * 5U + 3U) % kVocabulary);
    out.put(static_cast<char>(token & 0xff)).put(static_cast<char>(token >> 8));
  }
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
  return path.string();
}

double train(Model* model, lowtide::Loader* loader, int first, int last) {
  double loss = 0;
  for (int step = first; step < last; ++step) {
    const lowtide::Batch batch = loader->next();
    if (!batch) throw std::runtime_error("there are no more tokens");
    loss = model->train(batch);
    if (step % 50 == 0) {
      std::cout << "step " << std::setw(3) << step << "  epoch " << batch.epoch() << "  loss "
                << std::fixed << std::setprecision(4) << loss << "\n";
    }
  }
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::unique_ptr<Folder> folder;
    if (argc < 2) folder = std::make_unique<Folder>();
    const std::string path = folder ? write_tokens(folder->path) : argv[1];
    const lowtide::Tokens tokens =
        lowtide::Tokens::open(path, {.dtype = "uint16", .read = {.memory_bytes = 16 << 20}});
    const lowtide::LoaderOptions options{
        .batch_size = 12, .block_size = 64, .seed = 1337, .dtype = "int32"};

    Model model;
    lowtide::Loader loader(tokens, options);
    train(&model, &loader, 0, kCheckpoint);

    const Model saved_model = model;
    const lowtide::State saved = loader.state();
    const double whole = train(&model, &loader, kCheckpoint, kSteps);

    std::cout << "resuming from the checkpoint at epoch " << saved.epoch << ", step " << saved.step
              << "\n";
    Model second = saved_model;
    lowtide::Loader resumed(tokens, options);
    resumed.restore(saved);
    const double continued = train(&second, &resumed, kCheckpoint, kSteps);

    const bool same = whole == continued && second.logits == model.logits;
    std::cout << "the resumed run " << (same ? "is the same to the last bit" : "differs") << "\n";
    return same ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
