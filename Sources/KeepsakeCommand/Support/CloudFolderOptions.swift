#if Cloud
import ArgumentParser
import Foundation

/// What the commands that read a data folder have in common.
struct CloudFolderOptions: ParsableArguments {
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The folder of the cloud's data, as for keepsake serve.", valueName: "folder"),
    completion: .directory)
  var data: String

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  var folder: URL { get throws { try FolderArgument.url(data) } }
}
#endif
