#if Cloud
import ArgumentParser

extension CommandConfiguration {
  /// What stands between what a command's help says and its examples.
  static let examplesTitle = "EXAMPLES:"

  /// The configuration of a command whose help ends with examples, each a command line.
  init(
    commandName: String, abstract: String, usage: String? = nil, discussion: String = "", examples: [String]
  ) {
    let shown = ([Self.examplesTitle] + examples.map { "  " + $0 }).joined(separator: "\n")
    self.init(
      commandName: commandName, abstract: abstract, usage: usage,
      discussion: discussion.isEmpty ? shown : discussion + "\n\n" + shown)
  }
}
#endif
